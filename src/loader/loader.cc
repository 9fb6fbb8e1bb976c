// SPDX-License-Identifier: Apache-2.0
#include "loader/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/machine.h"
#include "index/row_maker.h"
#include "loader/equal_outputs.h"

namespace headrace {
namespace {

Status no_batch(const Plan& plan, uint64_t epoch) {
  return invalid(fmt::format(
      "{} has no batch: {} {}, {} in a global batch, and tail=\"drop\"; make the "
      "batch smaller or say tail=\"keep\" or tail=\"pad\"",
      plan.is_regrouped() ? fmt::format("epoch {}", epoch) : "an epoch", plan.epoch_length(epoch),
      plan.sources().front().groups == nullptr ? "samples" : "groups of samples",
      plan.global_batch()));
}

// From a plan, step by step, through one epoch or several.
class PlanFeed final : public Feed {
 public:
  PlanFeed(std::unique_ptr<Plan> plan, PlanPosition from, uint64_t until)
      : plan_(std::move(plan)),
        is_grouped_(plan_->sources().front().groups != nullptr),
        at_(from),
        until_(until) {}

  Result<bool> next(FeedStep& out) override {
    if (at_.g > 0 && plan_->steps_from(at_.epoch, at_.g) == 0) at_ = {at_.epoch + 1, 0};
    if (at_.epoch >= until_) return false;
    if (plan_->steps_from(at_.epoch, at_.g) == 0) return no_batch(*plan_, at_.epoch);
    HEADRACE_ASSIGN(const uint64_t g, plan_->step(at_.epoch, at_.g, slots_));
    out.epoch = at_.epoch;
    if (!is_grouped_) {
      out.tasks.reserve(slots_.size());
      for (const PlanSlot& s : slots_)
        out.tasks.push_back({s.source, s.sample, s.epoch, s.position, s.valid, s.repeat});
    } else {
      add_groups(out);
    }
    at_.g = g;
    const bool last = plan_->steps_from(at_.epoch, g) == 0;
    out.after = last ? Position{at_.epoch + 1, 0, true} : Position{at_.epoch, g, false};
    return true;
  }

  // Of groups nothing: another sample has another length.
  bool substitute(const Task& task, uint64_t attempt, Task& out) override {
    if (is_grouped_) return false;
    const auto found = plan_->substitute(
        {task.source, task.sample, task.epoch, task.position, task.valid, task.repeat}, attempt);
    if (!found) return false;
    out = {found->source,   found->sample, found->epoch,
           found->position, found->valid,  found->repeat};
    return true;
  }

  // Goes on by another plan, from `at` where it was beyond.
  void change(std::unique_ptr<Plan> plan, PlanPosition at) {
    plan_ = std::move(plan);
    if (std::pair(at_.epoch, at_.g) > std::pair(at.epoch, at.g)) at_ = at;
  }

 private:
  // A slot of the plan is a group.
  void add_groups(FeedStep& out) {
    out.groups.assign(1, 0);
    for (const PlanSlot& s : slots_) {
      for (const uint32_t sample : plan_->members(s))
        out.tasks.push_back({s.source, sample, s.epoch, s.position, s.valid, s.repeat});
      out.groups.push_back(static_cast<int64_t>(out.tasks.size()));
    }
  }

  std::unique_ptr<Plan> plan_;
  const bool is_grouped_;
  PlanPosition at_;
  const uint64_t until_;
  std::vector<PlanSlot> slots_;
};

// Small batches are made and taken so fast that waking threads costs as much: then more of them.
constexpr uint64_t kAheadBytes = uint64_t{4} << 20;
constexpr uint64_t kMostSmallBatches = 16;

constexpr uint64_t kRunBytes = uint64_t{4} << 20;  // of a block, about
// Asked for before anything is known of the rate: who takes one batch wants no more.
constexpr uint64_t kMostAtOnce = uint64_t{512} << 20;

// Enough batches to keep every thread busy while the consumer takes one.
size_t batches_ahead(uint64_t batch, int threads) {
  const uint64_t slots = 8 * static_cast<uint64_t>(threads);
  return static_cast<size_t>(std::clamp<uint64_t>(slots / std::max<uint64_t>(1, batch) + 2, 3, 64));
}

// Whether what is left to a device is the same in all sources.
bool leave_the_same(const std::vector<FieldWork>& made) {
  const DeferredSpec* first = made[0].decoder ? made[0].decoder->deferred() : nullptr;
  return std::all_of(made.begin(), made.end(), [&](const FieldWork& field) {
    const DeferredSpec* d = field.decoder ? field.decoder->deferred() : nullptr;
    if (first == nullptr || d == nullptr) return first == d;
    return d->has_pixels == first->has_pixels && d->result == first->result &&
           d->mode == first->mode && d->scale == first->scale && d->bias == first->bias &&
           d->channels_first == first->channels_first;
  });
}

Status in_source(const Status& status, const std::string& name) {
  return name.empty() ? status : status.with(fmt::format("source '{}'", name));
}

}  // namespace

Result<PlanSource> plan_source(const LoaderSource& s) {
  const Blocks& blocks = s.source->blocks();
  PlanSource out{.name = s.name,
                 .fingerprint = s.source->fingerprint().hex(),
                 .bytes = blocks.bytes,
                 .shared = blocks.shared,
                 .weights = s.weights};
  std::vector<uint32_t> draws;  // of each block
  if (s.weights != nullptr) {
    if (s.weights->samples() != s.source->size())
      return invalid(
          fmt::format("{} weights for {} samples", s.weights->samples(), s.source->size()));
    HEADRACE_ASSIGN(draws, s.weights->blocks(blocks.samples));
    out.fingerprint =
        Hasher().add(out.fingerprint).add(s.weights->fingerprint().hex()).finish().hex();
  }
  if (s.groups != nullptr) {
    if (s.weights != nullptr) return invalid("samples that have weights are not grouped by length");
    if (s.groups->samples() != s.source->size())
      return invalid(fmt::format("lengths of {} samples for a data set of {}", s.groups->samples(),
                                 s.source->size()));
    HEADRACE_ASSIGN(BlockTree samples, BlockTree::build(blocks.samples));
    HEADRACE_ASSIGN(out.groups, EpochGroups::make(s.groups, std::move(samples)));
    out.tree = out.groups->as_they_lie().tree;
    out.fingerprint =
        Hasher().add(out.fingerprint).add(s.groups->fingerprint().hex()).finish().hex();
  }
  if (s.groups != nullptr) return out;
  HEADRACE_ASSIGN(BlockTree tree, BlockTree::build(s.weights ? draws : blocks.samples));
  out.tree = std::make_shared<const BlockTree>(std::move(tree));
  return out;
}

Result<std::unique_ptr<Loader>> Loader::make(std::vector<LoaderSource> sources,
                                             LoaderOptions options) {
  if (sources.empty()) return invalid("there is no source");
  std::unique_ptr<Loader> out(new Loader);
  out->sources_ = std::move(sources);
  out->plan_options_ = options.plan;
  HEADRACE_TRY(out->open_device(options));
  HEADRACE_TRY(out->add_sources());
  for (const FieldRequest& request : out->sources_.front().requests)
    HEADRACE_TRY(out->add_column(request.output, options));
  HEADRACE_TRY(out->add_masks());
  HEADRACE_ASSIGN(out->plan_, Plan::make(out->plan_sources_, options.plan));
  if (out->epoch_length(0) == 0) return invalid("the data set has no sample");
  HEADRACE_TRY(out->check_epoch(0));
  out->choose_engine_options(options);
  HEADRACE_TRY(out->add_mix(options));
  HEADRACE_TRY(out->add_packing(options));
  HEADRACE_TRY(out->add_device_stage(options));
  out->engine_ = std::make_unique<Engine>(out->works_, out->columns_, out->engine_options_);
  return out;
}

// The sources, without columns yet.
Status Loader::add_sources() {
  const bool as_they_lie = sources_.front().requests.empty();
  for (LoaderSource& s : sources_) {
    const Source& like = *(as_they_lie ? sources_.front() : s).source;
    if (s.requests.empty()) {
      s.requests = fields_as_they_lie(like.schema());
      // An empty cell among floating numbers is NaN, as pandas has it; integers have no such value.
      // What Python makes has no empty cells: there it is a bad sample.
      const auto* const maker = dynamic_cast<const RowMaker*>(&like);
      for (size_t f = 0; f < s.requests.size(); ++f) {
        if (like.schema()[f].kind != Kind::kFloat || s.requests[f].many) continue;
        if (maker != nullptr && maker->makes_rows(static_cast<uint32_t>(f))) continue;
        s.requests[f].otherwise = PadNumber(std::numeric_limits<double>::quiet_NaN());
        s.requests[f].is_none_when_absent = false;
      }
    }
    share_pictures(s.requests);
    HEADRACE_ASSIGN(PlanSource plan, plan_source(s));
    plan_sources_.push_back(std::move(plan));
    SourceWork& work = works_.emplace_back();
    work.source = s.source;
    work.id = s.name.empty() ? 0 : Key(0).with(s.name).value();
  }
  return check_names(sources_);
}

// What one output is made of in each source.
Status Loader::make_fields(const std::string& output, const std::shared_ptr<LateWork>& late,
                           std::vector<FieldWork>& made) {
  made.assign(sources_.size(), FieldWork());
  const FieldWork* like = nullptr;
  // First those that have it: they say what it is where another lacks it.
  for (const bool has : {true, false}) {
    for (size_t k = 0; k < sources_.size(); ++k) {
      const LoaderSource& s = sources_[k];
      FieldRequest request = *request_of(s, output);
      if (has_field(request, *s.source) != has) continue;
      request.late = late;
      auto field = make_field(request, *s.source, like == nullptr ? nullptr : &like->spec.value);
      if (!field.ok()) return in_source(field.status(), s.name);
      made[k] = std::move(field).value();
      if (like == nullptr) like = &made[k];
    }
  }
  if (!request_of(sources_.front(), output)->is_none_when_absent && like->field == kNoField)
    notes_.push_back(
        fmt::format("field '{}': the data have no field '{}': every sample gets what is given for "
                    "a missing one",
                    output, request_of(sources_.front(), output)->field));
  return {};
}

// One output, equal in all sources.
Status Loader::add_column(const std::string& output, const LoaderOptions& options) {
  std::vector<FieldWork> made;
  const std::shared_ptr<LateWork> late = late_work_of(output, options);
  HEADRACE_TRY(make_fields(output, late, made));
  if (late != nullptr && !leave_the_same(made)) {
    HEADRACE_TRY(make_fields(output, nullptr, made));
    late->why_on_cpu = "the sources of the blend store it in different ways";
  }
  if (late != nullptr) HEADRACE_TRY(tell_where(output, *late, made[0], options));
  for (size_t k = 1; k < made.size(); ++k)
    HEADRACE_TRY(check_equal(sources_.front().name, made[0].spec, sources_[k].name, made[k].spec));
  const DeferredSpec* left = made[0].decoder ? made[0].decoder->deferred() : nullptr;
  columns_.push_back(
      {.spec = made[0].spec, .is_read_by_stage = gpu_ != nullptr && left != nullptr});
  for (size_t k = 0; k < made.size(); ++k) {
    works_[k].fields.push_back(made[k].field);
    works_[k].decoders.push_back(std::move(made[k].decoder));
    works_[k].absent.push_back(std::move(made[k].absent));
  }
  return {};
}

// OUTPUT_valid of every output that is optional in some source, after all outputs.
Status Loader::add_masks() {
  const size_t outputs = columns_.size();
  for (size_t c = 0; c < outputs; ++c) {
    const std::string& output = columns_[c].spec.name;
    if (std::none_of(sources_.begin(), sources_.end(),
                     [&](const LoaderSource& s) { return request_of(s, output)->optional; }))
      continue;
    const std::string name = output + "_valid";
    if (request_of(sources_.front(), name) != nullptr)
      return invalid(fmt::format(
          "field '{}' is optional and adds '{}', which is a field too; rename one of them", output,
          name));
    columns_.push_back({ColumnSpec{name, {DType::kU8, {}}, Packing::kDense}, c});
    for (SourceWork& work : works_) {
      work.fields.push_back(kNoField);
      work.decoders.push_back(nullptr);
      work.absent.push_back(nullptr);
    }
  }
  return {};
}

// Rows of the samples that are delivered together.
Status Loader::add_packing(const LoaderOptions& options) {
  const auto grouped = std::count_if(sources_.begin(), sources_.end(),
                                     [](const LoaderSource& s) { return s.groups != nullptr; });
  if (grouped != 0 && grouped != static_cast<std::ptrdiff_t>(sources_.size()))
    return invalid("some sources of the blend are packed and some are not: pack all, or none");
  if (grouped > 0 && options.bad_samples.replace)
    return invalid(
        "bad_samples=\"replace\" does not go with packed samples and token budgets: another sample "
        "has another length; leave it out");
  if (!options.packing) return {};
  std::vector<ColumnSpec> specs;
  for (const ColumnWork& c : columns_) specs.push_back(c.spec);
  HEADRACE_ASSIGN(std::shared_ptr<const BatchStage> stage,
                  make_row_packing(*options.packing, specs));
  engine_options_.stages.push_back(std::move(stage));
  added_ = headrace::added_columns(*options.packing, specs);
  return {};
}

// How the bytes of each source are read.
void Loader::choose_policies(const LoaderOptions& options) {
  EngineOptions& e = engine_options_;
  const PlanState state = plan_->state({});
  const StepCut& cut = options.plan.cut;
  const bool all_compute = e.compute_threads * std::max(1, options.local_ranks) >= usable_cpus();
  uint64_t held = 0;
  uint32_t parallel = 0;
  for (size_t k = 0; k < sources_.size(); ++k) {
    const Source& source = *sources_[k].source;
    const StoreCost cost =
        source.size() > 0 ? source.store().cost(source.file_path(0)) : StoreCost();
    const uint64_t mean = plan_sources_[k].bytes / std::max<uint64_t>(1, source.size());
    ReadPolicy& policy = works_[k].policy;
    const bool runs = options.read_runs || prefers_runs(cost, mean);
    policy = policy_of(cost, runs ? kRunBytes : mean,
                       most_free_ahead_bytes(e.memory_budget_bytes, !cost.is_near()));
    // With processors to spare, others may as well read.
    policy.late = !policy.is_far && all_compute;
    policy.runs = runs;
    if (policy.is_far && cost.in_caller) parallel = std::max(parallel, cost.parallel_reads);
    // Samples that other processes make: as many are asked for as those can be at.
    if (!policy.is_far && !cost.in_caller)
      e.batches_ahead = std::max<size_t>(
          e.batches_ahead,
          std::min<uint64_t>(cost.parallel_reads * cut.world / std::max<uint64_t>(1, cut.batch) + 2,
                             64));
    if (policy.runs && state.mode == OrderMode::kPool)
      held += (state.lanes + cut.world - 1) / cut.world * state.pools[k] * mean;
    // Samples of every block come all through the epoch: all blocks are held, by one rank.
    if (policy.runs && state.mode == OrderMode::kGlobal)
      held += cut.world == 1 ? plan_sources_[k].bytes : e.memory_budget_bytes;
  }
  // Near storage is read faster than it is decoded: more threads than these only get in the way
  // of those that decode.
  e.io_threads = std::clamp(e.compute_threads, 2, 16);
  if (parallel > 0) e.io_threads = static_cast<int>(std::clamp<uint32_t>(parallel, 4, 64));
  uint64_t bytes = 0;
  uint64_t samples = 0;
  for (const PlanSource& source : plan_sources_) bytes += source.bytes;
  for (const LoaderSource& source : sources_) samples += source.source->size();
  const uint64_t first_batch_bytes =
      bytes / std::max<uint64_t>(1, samples) * (cut.batch / std::max(1u, cut.world));
  // The first batch comes by ranges, all of it: of runs it would need nearly every one.  In order
  // it needs the first ones, and nothing is read twice.
  const bool is_in_order = state.mode == OrderMode::kNone && cut.world == 1;
  e.ranges_first_bytes =
      is_in_order ? 0 : std::min(e.ranges_first_bytes, std::max(bytes / 64, first_batch_bytes));
  ask_for_all_that_is_kept();
  // Runs pay when the pools of this rank fit: about L/R of them are open at a time.
  if (!reads_runs() || held <= e.memory_budget_bytes / 2) return;
  for (SourceWork& work : works_) work.policy.runs = false;
  if (state.mode == OrderMode::kGlobal) return;
  notes_.push_back(fmt::format(
      "reading single samples instead of whole runs: the pools of this rank take {} MiB of a "
      "memory budget of {} MiB",
      held >> 20, e.memory_budget_bytes >> 20));
}

// Runs of which all stay in memory, and of which a shuffled batch needs nearly every one: those
// that wait together become few requests, for whole files where these are small.  Of a server that
// answers at once few are under way at a time; of others all would share the wire with the first.
void Loader::ask_for_all_that_is_kept() {
  uint64_t all = 0;
  for (size_t k = 0; k < works_.size(); ++k)
    if (works_[k].policy.runs) all += plan_sources_[k].bytes;
  if (all > engine_options_.memory_budget_bytes / 2) return;
  for (size_t k = 0; k < works_.size(); ++k) {
    ReadPolicy& policy = works_[k].policy;
    if (policy.runs && policy.answers_soon)
      policy.first_bytes =
          std::max(policy.first_bytes, std::min(plan_sources_[k].bytes, kMostAtOnce));
  }
}

bool Loader::reads_runs() const {
  return std::any_of(works_.begin(), works_.end(),
                     [](const SourceWork& w) { return w.policy.runs; });
}

// Threads that wait for a process leave their processor to it.
int Loader::compute_threads(const LoaderOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::max(1, usable_cpus() / std::max(1, options.local_ranks) - options.processes);
}

void Loader::choose_engine_options(const LoaderOptions& options) {
  const int ranks = std::max(1, options.local_ranks);
  EngineOptions& e = engine_options_;
  e.compute_threads = compute_threads(options);
  e.compute_threads += options.processes;
  e.processes = options.processes;
  e.shared_cpus = std::max(options.threads, usable_cpus() / ranks);
  e.memory_budget_bytes = options.memory_budget_bytes;
  if (e.memory_budget_bytes == 0)
    e.memory_budget_bytes =
        std::min(usable_memory_bytes() / 4 / static_cast<uint64_t>(ranks), uint64_t{8} << 30);
  const StepCut& cut = options.plan.cut;
  e.batches_ahead = batches_ahead(cut.batch / cut.world, e.compute_threads);
  uint64_t sample_bytes = 0;
  bool is_fixed = true;
  for (const ColumnWork& c : columns_) {
    is_fixed = is_fixed && c.spec.packing == Packing::kDense && !c.spec.many;
    if (is_fixed) sample_bytes += c.spec.value.bytes();
  }
  const uint64_t batch_bytes = sample_bytes * (cut.batch / cut.world);
  // Not where processes make values: what is far ahead must not take them from the batch at the
  // head.
  if (is_fixed && batch_bytes > 0 && options.processes == 0)
    e.batches_ahead =
        std::max<size_t>(e.batches_ahead, std::min(kAheadBytes / batch_bytes, kMostSmallBatches));
  e.seed = options.plan.seed;
  e.bad_samples = options.bad_samples;
  choose_policies(options);
  note_shared_units();
}

// Row groups, and other units that several samples share, that do not fit are opened again for
// nearly every sample: slow, and worth a word.
void Loader::note_shared_units() {
  const PlanState state = plan_->state({});
  const uint64_t world = plan_options_.cut.world;
  uint64_t held = 0;
  for (size_t k = 0; k < sources_.size() && state.mode != OrderMode::kNone; ++k) {
    const PlanSource& source = plan_sources_[k];
    if (!source.shared) continue;
    const uint64_t mean = source.bytes / std::max<uint64_t>(1, sources_[k].source->size());
    held += state.mode == OrderMode::kGlobal
                ? source.bytes
                : (state.lanes + world - 1) / world * state.pools[k] * mean;
  }
  const uint64_t budget = engine_options_.memory_budget_bytes;
  if (held > budget)
    notes_.push_back(fmt::format(
        "shuffling needs up to {} MiB of row groups or compressed chunks open at a time, the "
        "memory budget is {} MiB: "
        "they may be opened again and again; give more memory_budget{}",
        held >> 20, budget >> 20,
        state.mode == OrderMode::kGlobal ? ", or shuffle=\"pool\"" : ", or a smaller window"));
}

Status Loader::check_epoch(uint64_t epoch) const {
  return steps_in_epoch(epoch) == 0 ? no_batch(*plan_, epoch) : Status();
}

Status Loader::begin(PlanPosition from, bool run_on, uint64_t until) {
  HEADRACE_ASSIGN(auto plan, Plan::resume(plan_sources_, plan_options_, plan_->state(from)));
  until_ = run_on ? until : from.epoch + 1;
  HEADRACE_TRY(engine_->start(std::make_unique<PlanFeed>(std::move(plan), from, until_)));
  running_ = true;
  begun_ = ahead_ = from;
  return {};
}

Result<Engine::Next> Loader::next(std::unique_ptr<Batch>& out, int timeout_ms) {
  auto outcome = engine_->next(out, timeout_ms);
  if (!outcome.ok() || outcome.value() == Engine::Next::kEnd) running_ = false;
  if (outcome.ok() && outcome.value() == Engine::Next::kBatch)
    ahead_ = {out->after.epoch, out->after.g};
  return outcome;
}

void Loader::stop() {
  engine_->stop();
  running_ = false;
}

void Loader::use_arena(std::shared_ptr<Arena> arena) {
  engine_options_.column_arena = std::move(arena);
  engine_ = std::make_unique<Engine>(works_, columns_, engine_options_);
}

Status Loader::load(const PlanState& state) {
  HEADRACE_ASSIGN(auto plan, Plan::resume(plan_sources_, plan_options_, state));
  stop();
  plan_ = std::move(plan);
  if (engine_options_.seed != state.seed) {
    // The draws of the augmentations follow the state's seed too.
    engine_options_.seed = state.seed;
    engine_ = std::make_unique<Engine>(works_, columns_, engine_options_);
  }
  return {};
}

Status Loader::set_weights(const std::vector<double>& weights, PlanPosition at) {
  const uint64_t draw = at.epoch * epoch_length(at.epoch) + at.g;
  if (running_) {
    // Kept steps may still ask this plan for substitutes: it knows all from the delivered ones on.
    HEADRACE_ASSIGN(auto plan, Plan::resume(plan_sources_, plan_options_, plan_->state(ahead_)));
    HEADRACE_TRY(plan->set_weights(weights, draw));
    HEADRACE_TRY(replan(std::move(plan), draw));
  }
  return plan_->set_weights(weights, draw);
}

// Tells the running feed, from the step on that holds the draw.
Status Loader::replan(std::unique_ptr<Plan> plan, uint64_t draw) {
  const uint64_t batch = global_batch();
  const uint64_t length = epoch_length(0);  // of a mixture: alike in all
  PlanPosition at{draw / length, draw % length};
  uint64_t step = 0;
  if (at.epoch == begun_.epoch) {
    step = std::min((at.g - std::min(at.g, begun_.g)) / batch, steps_from(begun_));
    at.g = begun_.g + step * batch;
  } else {
    const uint64_t into = std::min(at.g / batch, steps_in_epoch(0));
    step = steps_from(begun_) + (at.epoch - begun_.epoch - 1) * steps_in_epoch(0) + into;
    at.g = into * batch;
  }
  return engine_->replan(
      step, [&](Feed& feed) { static_cast<PlanFeed&>(feed).change(std::move(plan), at); });
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "loader/loader.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/inside.h"
#include "loader/epochs.h"
#include "loader/verdict.h"
#include "plan/state_text.h"
#include "trace/clock.h"

namespace hr {
namespace {

constexpr int kLookMs = 1000;  // how long one wait for a batch lasts

Column to_column(std::string name, headrace::Column& column) {
  Column out;
  out.name = std::move(name);
  if (column.values) out.values = to_array(column.values, column.dtype, column.shape);
  for (size_t i = 0; i < column.items.size(); ++i)
    out.items.push_back(column.items[i]
                            ? to_array(column.items[i], column.dtype, column.shapes[i])
                            : Array{.dtype = std::string(headrace::dtype_name(column.dtype))});
  out.offsets = std::move(column.offsets);
  out.shapes = std::move(column.shapes);
  out.first = std::move(column.first);
  return out;
}

headrace::MixOptions mix_options(const std::vector<Mix>& mix, const Fields& fields) {
  headrace::MixOptions out;
  const Mix& first = mix.front();
  for (const Mix& m : mix) {
    if (m.classes != first.classes || m.image != first.image || m.label != first.label)
      raise(headrace::invalid("mix: all entries must name the same classes, image and label"));
    out.kinds.push_back({m.kind, m.alpha, m.p});
  }
  out.image = first.image;
  out.label = first.label;
  out.classes = first.classes;
  for (const auto& [name, field] : fields) {
    if (name != first.image) continue;
    for (const auto& [step, values] : field.steps) {
      if (step != "layout" || !values.contains("order")) continue;
      const auto* order = std::get_if<std::string>(&values.at("order").get());
      out.channels_last = order != nullptr && *order == "NHWC";
    }
  }
  return out;
}

headrace::LoaderOptions loader_options(const LoaderOptions& options, const Fields& fields) {
  headrace::LoaderOptions o;
  o.plan = plan_options(options.order);
  o.threads = options.threads;
  o.memory_budget_bytes = options.memory_budget;
  o.bad_samples = {options.replace_bad_samples, options.most_bad_samples};
  if (!options.mix.empty()) o.mix = mix_options(options.mix, fields);
  return o;
}

StageStats stage(const headrace::StageStats& s) {
  return {s.items, s.bytes, static_cast<double>(s.busy_ns) * 1e-9,
          static_cast<double>(s.wait_input_ns) * 1e-9, static_cast<double>(s.wait_room_ns) * 1e-9};
}

}  // namespace

const Column& Batch::operator[](const std::string& name) const {
  std::string known;
  for (const Column& c : columns) {
    if (c.name == name) return c;
    known += (known.empty() ? "" : ", ") + c.name;
  }
  raise(headrace::invalid("the batch has no field '" + name + "'; it has " + known));
}

struct Loader::Inside {
  explicit Inside(std::unique_ptr<headrace::Loader> made)
      : loader(std::move(made)), epochs(*loader) {}
  std::unique_ptr<headrace::Loader> loader;
  headrace::Epochs epochs;
  std::vector<std::string> names;  // of the parts of a blend
  uint64_t left = 0;               // batches of the epoch that was begun
  headrace::VerdictCounters loop;  // what the consumer did
  uint64_t returned_ns = 0;        // when the last batch of this epoch was given; 0: none was

  // A batch that was asked for then is given now.
  void count(uint64_t asked_ns) {
    const uint64_t now = headrace::steady_ns();
    ++loop.batches;
    loop.wait_s += static_cast<double>(now - asked_ns) * 1e-9;
    if (returned_ns != 0) loop.step_s += static_cast<double>(asked_ns - returned_ns) * 1e-9;
    returned_ns = now;
  }
};

Loader::Loader(const Dataset& data, const Fields& fields, const LoaderOptions& options)
    : inside_(std::make_unique<Inside>(unwrap(headrace::Loader::make(
          {{"", data.inside().source, requests_of(fields)}}, loader_options(options, fields))))) {}

Loader::Loader(const Blend& blend, const Fields& fields, const LoaderOptions& options) {
  headrace::LoaderOptions o = loader_options(options, fields);
  std::vector<headrace::LoaderSource> sources = sources_of(blend, fields, o.plan);
  inside_ =
      std::make_unique<Inside>(unwrap(headrace::Loader::make(std::move(sources), std::move(o))));
  for (const BlendPart& part : blend.parts) inside_->names.push_back(part.name);
}
Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;

uint64_t Loader::steps() const {
  return inside_->epochs.steps();
}

uint64_t Loader::next_epoch() const {
  return inside_->epochs.next();
}

void Loader::set_epoch(uint64_t epoch) {
  check(inside_->epochs.set_epoch(epoch));
}

void Loader::begin(uint64_t epoch, std::optional<uint64_t> until) {
  inside_->left = unwrap(inside_->epochs.begin(epoch, until)).steps;
  inside_->returned_ns = 0;
}

void Loader::begin() {
  begin(next_epoch());
}

std::optional<Batch> Loader::next() {
  if (inside_->left == 0) return {};
  headrace::Loader& loader = *inside_->loader;
  const uint64_t asked_ns = headrace::steady_ns();
  std::unique_ptr<headrace::Batch> raw;
  auto what = headrace::Engine::Next::kTimeout;
  while (what == headrace::Engine::Next::kTimeout) what = unwrap(loader.next(raw, kLookMs));
  if (what == headrace::Engine::Next::kEnd) return {};
  --inside_->left;
  inside_->epochs.received(raw->after);
  Batch out;
  for (size_t c = 0; c < raw->columns.size(); ++c)
    out.columns.push_back(to_column(loader.columns()[c].spec.name, raw->columns[c]));
  out.indices = std::move(raw->indices);
  out.sources.assign(raw->sources.begin(), raw->sources.end());
  out.valid.assign(raw->valid.begin(), raw->valid.end());
  out.state = state();
  inside_->count(asked_ns);
  return out;
}

std::string Loader::state() const {
  return headrace::state_text(inside_->epochs.state());
}

void Loader::load(const std::string& state) {
  check(inside_->epochs.load(unwrap(headrace::read_state(state))));
  inside_->left = 0;
}

std::string Loader::plan_id() const {
  return inside_->loader->plan_id().hex();
}

std::vector<std::string> Loader::differences() const {
  return inside_->loader->differences();
}

void Loader::set_weights(const std::map<std::string, double>& weights, uint64_t at_step) {
  const std::vector<std::string>& names = inside_->names;
  if (names.empty())
    raise(headrace::invalid("set_weights is for a blend; this Loader has one source"));
  std::vector<double> ordered;
  for (const std::string& name : names) {
    const auto found = weights.find(name);
    if (found == weights.end())
      raise(headrace::invalid(fmt::format("the weights lack the source '{}'", name)));
    ordered.push_back(found->second);
  }
  for (const auto& [name, weight] : weights)
    if (std::find(names.begin(), names.end(), name) == names.end())
      raise(headrace::invalid(fmt::format("the blend has no source '{}'", name)));
  check(inside_->epochs.set_weights(ordered, at_step));
}

Verdict Loader::verdict() const {
  const headrace::EngineStats s = inside_->loader->stats();
  headrace::VerdictCounters c = inside_->loop;
  c.decode_items = static_cast<double>(s.decode.items);
  c.decode_busy_s = static_cast<double>(s.decode.busy_ns) * 1e-9;
  c.read_items = static_cast<double>(s.read.items);
  c.read_bytes = static_cast<double>(s.read.bytes);
  c.read_latency_median_ms = static_cast<double>(s.read_latency_median_ns) * 1e-6;
  c.read_latency_p99_ms = static_cast<double>(s.read_latency_p99_ns) * 1e-6;
  c.most_reads_under_way = static_cast<double>(s.most_reads_under_way);
  c.read_ahead_bytes = static_cast<double>(s.read_ahead_bytes);
  c.compute_threads = inside_->loader->engine_options().compute_threads;
  headrace::Verdict v = headrace::verdict_of(c);
  return {v.cause, v.text(), v.advice, std::move(v.numbers)};
}

Stats Loader::stats() const {
  const headrace::EngineStats s = inside_->loader->stats();
  Stats out;
  out.plan = stage(s.plan);
  out.resolve = stage(s.resolve);
  out.read = stage(s.read);
  out.decode = stage(s.decode);
  out.pack = stage(s.pack);
  out.deliver = stage(s.deliver);
  out.read_latency_median_ms = static_cast<double>(s.read_latency_median_ns) * 1e-6;
  out.read_latency_p99_ms = static_cast<double>(s.read_latency_p99_ns) * 1e-6;
  out.reads_under_way = s.reads_under_way;
  out.most_reads_under_way = s.most_reads_under_way;
  out.read_ahead_bytes = s.read_ahead_bytes;
  out.memory_used = s.memory_used;
  out.memory_peak = s.memory_peak;
  out.memory_budget = s.memory_budget;
  out.units_reread = s.units_reread;
  out.damaged = s.damaged;
  out.compute_threads = inside_->loader->engine_options().compute_threads;
  out.io_threads = inside_->loader->engine_options().io_threads;
  return out;
}

std::vector<std::string> Loader::notes() const {
  return inside_->loader->notes();
}

std::vector<BadSample> Loader::quarantine() const {
  std::vector<BadSample> out;
  for (const headrace::Quarantined& q : inside_->loader->quarantine())
    out.push_back({q.sample, q.source, q.epoch, q.file, q.offset, q.key, q.cause});
  return out;
}

}  // namespace hr

// SPDX-License-Identifier: Apache-2.0
#include "loader/dataset.h"

#include <fmt/format.h>

#include "base/guard.h"
#include "codec/elements.h"
#include "engine/read_now.h"
#include "engine/values.h"

namespace headrace {
namespace {

constexpr uint64_t kKeepUnits = 256 << 20;  // opened units kept for the next sample

bool is_npy_field(const Source& source, const std::string& name) {
  const Result<uint32_t> found = find_field(source.schema(), name);
  return found.ok() && source.schema()[found.value()].kind == Kind::kNpy;
}

// A context of the calling thread's, which keeps it for the next sample.  A function of the user's
// may ask for another sample while one is decoded: that one gets a context of its own.
class ThreadsContext {
 public:
  ThreadsContext() {
    Kept& kept = this_thread();
    if (kept.used == kept.contexts.size())
      kept.contexts.push_back(std::make_unique<SampleContext>());
    context_ = kept.contexts[kept.used++].get();
  }
  ~ThreadsContext() { --this_thread().used; }
  ThreadsContext(const ThreadsContext&) = delete;
  ThreadsContext& operator=(const ThreadsContext&) = delete;
  SampleContext& operator*() const { return *context_; }
  SampleContext* operator->() const { return context_; }

 private:
  struct Kept {
    std::vector<std::unique_ptr<SampleContext>> contexts;
    size_t used = 0;
  };
  static Kept& this_thread() {
    static thread_local Kept kept;
    return kept;
  }

  SampleContext* context_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Dataset>> Dataset::make(std::shared_ptr<const Source> source,
                                               std::vector<FieldRequest> requests) {
  const bool as_they_lie = requests.empty();
  if (as_they_lie) requests = fields_as_they_lie(source->schema());
  share_pictures(requests);
  std::unique_ptr<Dataset> out(new Dataset(std::move(source), std::move(requests), as_they_lie));
  for (FieldRequest request : out->requests_) {
    // One sample at a time: any shape will do.
    if (!request.packing) request.packing = Packing::kList;
    out->own_types_.push_back(as_they_lie && is_npy_field(*out->source_, request.field));
    FieldWork work;
    if (out->own_types_.back()) {
      HEADRACE_ASSIGN(work.field, find_field(out->source_->schema(), request.field));
      work.spec = {request.output, {}, Packing::kList, request.many};
    } else {
      HEADRACE_ASSIGN(work, make_field(request, *out->source_));
    }
    work.spec.packing = Packing::kList;
    out->want_key_ = out->want_key_ || work.is_key();
    out->place_.push_back(out->fields_.size());
    if (work.is_stored()) out->fields_.push_back(work.field);
    out->works_.push_back(std::move(work));
  }
  out->pool_ = BufferPool::make(0);
  return out;
}

Result<std::vector<SampleValue>> Dataset::at(uint64_t sample) const {
  if (sample >= size())
    return invalid(fmt::format("there is no sample {}; the data set has {}", sample, size()));
  const Key draws = Key(0).with(uint64_t{0}).with(uint64_t{0}).with(sample);
  const auto explain = [&](const Status& s) { return s.of_sample(sample, source_->key(sample)); };
  Gather gather;
  if (Status s = gather.add(
          *source_, {.sample = sample, .fields = fields_, .draws = draws, .want_key = want_key_});
      !s.ok())
    return explain(s);
  gather.plan_reads({}, &units_);
  read_now(gather, units_);
  const ThreadsContext context;
  context->begin(draws, 0, sample, 0, gather.key(0));
  std::vector<SampleValue> out(works_.size());
  for (size_t c = 0; c < works_.size(); ++c) {
    const FieldWork& work = works_[c];
    out[c].missing = is_missing(gather, c);
    if (out[c].missing && !work.spec.many && !requests_[c].otherwise &&
        (as_they_lie_ || requests_[c].optional))
      continue;
    if (Status s = guard([&] { return decode(gather, c, *context, out[c]); }); !s.ok())
      return explain(s);
  }
  // While this sample's are pinned: they stay for the next one, even where they are larger.
  if (units_.bytes() > kKeepUnits) units_.evict(units_.bytes() - kKeepUnits);
  return out;
}

bool Dataset::is_missing(const Gather& gather, size_t c) const {
  const FieldWork& work = works_[c];
  return !work.is_key() && (!work.is_stored() || gather.values(0, place_[c]) == 0);
}

Status Dataset::decode(Gather& gather, size_t c, SampleContext& context, SampleValue& out) const {
  const FieldWork& work = works_[c];
  if (own_types_[c] && (work.spec.many || gather.values(0, place_[c]) == 1)) {
    const size_t count = gather.values(0, place_[c]);
    out.present = out.many = work.spec.many;
    out.values.resize(work.spec.many ? count : 0);
    for (size_t v = 0; v < count; ++v)
      HEADRACE_TRY(read_npy_value(gather, c, v, work.spec.many ? out.values[v] : out));
    return {};
  }
  ColumnBuilder builder(work.spec, 1, *pool_);
  const ValueWork value{*work.decoder, work.spec, work.field, work.absent.get()};
  if (work.is_key()) {
    ColumnSlot slot(builder, 0);
    const Bytes key = as_bytes(gather.key(0));
    HEADRACE_TRY(work.decoder->run({&key, 1}, context, slot));
  } else if (!work.is_stored()) {
    HEADRACE_TRY(fill_absent(value, context, builder, 0));
  } else {
    uint64_t bytes = 0;
    HEADRACE_TRY(decode_values(value, *source_, gather, 0, place_[c], context, builder, 0, bytes));
  }
  Column column = builder.finish();
  out.present = true;
  out.many = column.many;
  for (size_t v = 0; v < column.items.size(); ++v) {
    SampleValue& to = column.many ? out.values.emplace_back() : out;
    to.present = true;
    to.dtype = column.dtype;
    to.shape = std::move(column.shapes[v]);
    to.bytes = std::move(column.items[v]);
  }
  return {};
}

// A .npy as it lies is whatever it says it is.
Status Dataset::read_npy_value(Gather& gather, size_t c, size_t v, SampleValue& out) const {
  const auto located = [&](const Status& s) {
    return gather.locate(s.with(fmt::format("field '{}'", works_[c].spec.name)), 0, place_[c], v);
  };
  HEADRACE_ASSIGN(const Bytes value, gather.value(0, place_[c], v));
  auto array = open_npy(value, value.size());
  if (!array.ok()) return located(array.status());
  out.bytes = pool_->take(array.value().header.data_bytes());
  HEADRACE_TRY(array.value().copy(value, out.bytes->span()));
  out.present = true;
  out.dtype = array.value().dtype;
  out.shape = std::move(array.value().shape);
  return {};
}

}  // namespace headrace

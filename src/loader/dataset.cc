// SPDX-License-Identifier: Apache-2.0
#include "loader/dataset.h"

#include <fmt/format.h>

#include "base/guard.h"
#include "engine/gather.h"
#include "engine/read_now.h"

namespace headrace {
namespace {

constexpr uint64_t kKeepUnits = 256 << 20;  // opened units kept for the next sample

Status decode_value(const FieldWork& work, Gather& gather, size_t field, Key draws, Slot& slot) {
  if (work.is_key)
    return work.decoder->run(as_bytes(gather.key(0)), draws, slot)
        .with(fmt::format("field '{}'", work.spec.name));
  if (gather.values(0, field) > 1)
    return unsupported(fmt::format("the sample has {} values of field '{}'; one is wanted",
                                   gather.values(0, field), work.spec.name));
  HEADRACE_ASSIGN(const Bytes value, gather.value(0, field));
  if (Status s = work.decoder->run(value, draws, slot); !s.ok())
    return gather.locate(s.with(fmt::format("field '{}'", work.spec.name)), 0, field);
  return {};
}

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
    HEADRACE_ASSIGN(FieldWork work, make_field(request, *out->source_));
    work.spec.packing = Packing::kList;
    out->want_key_ = out->want_key_ || work.is_key;
    out->fields_.push_back(work.field);
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
  if (Status s = gather.add(*source_, sample, fields_, draws, want_key_); !s.ok())
    return explain(s);
  gather.plan_reads({}, &units_);
  read_now(gather, units_);
  std::vector<SampleValue> out(works_.size());
  for (size_t c = 0; c < works_.size(); ++c) {
    const FieldWork& work = works_[c];
    if (!work.is_key && gather.values(0, c) == 0) {
      if (as_they_lie_) continue;
      return explain(corrupt(fmt::format("the sample has no field '{}'", requests_[c].field)));
    }
    ColumnBuilder builder(work.spec, 1, *pool_);
    ColumnSlot slot(builder, 0);
    if (Status s = guard([&] { return decode_value(work, gather, c, draws, slot); }); !s.ok())
      return explain(s);
    Column column = builder.finish();
    out[c] = {true, column.dtype, std::move(column.shapes[0]), std::move(column.items[0])};
  }
  // While this sample's are pinned: they stay for the next one, even where they are larger.
  if (units_.bytes() > kKeepUnits) units_.evict(units_.bytes() - kKeepUnits);
  return out;
}

}  // namespace headrace

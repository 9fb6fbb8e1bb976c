// SPDX-License-Identifier: Apache-2.0
#include "pack/sample_reader.h"

#include <fmt/format.h>

#include "engine/read_now.h"

namespace headrace {
namespace {

constexpr uint64_t kKeepUnits = uint64_t{256} << 20;  // opened units kept for the next sample

}  // namespace

Result<Record> SampleReader::read(uint64_t sample) {
  gather_.clear();
  const auto explain = [&](const Status& s) { return s.of_sample(sample, source_.key(sample)); };
  if (Status s = gather_.add(source_, sample, fields_, Key(0), true); !s.ok()) return explain(s);
  gather_.plan_reads({}, &units_);
  read_now(gather_, units_);
  for (const Range& range : gather_.ranges()) bytes_read_ += range.bytes.size();
  if (units_.bytes() > kKeepUnits) units_.evict(units_.bytes() - kKeepUnits);
  values_.clear();
  held_.clear();
  for (size_t f = 0; f < fields_.size(); ++f) {
    const Field& field = source_.schema()[fields_[f]];
    for (size_t v = 0, n = gather_.values(0, f); v < n; ++v) {
      const Result<Bytes> value = gather_.value(0, f, v);
      if (!value.ok())
        return explain(
            gather_.locate(value.status().with(fmt::format("field '{}'", field.name)), 0, f));
      values_.push_back({field.name, field.kind, field.storage, keep(value.value())});
    }
  }
  return Record{gather_.key(0), values_};
}

// A value that was joined from pieces is good until the next one.
Bytes SampleReader::keep(Bytes value) {
  if (!gather_.is_joined(value)) return value;
  return held_.emplace_back(value.begin(), value.end());
}

}  // namespace headrace

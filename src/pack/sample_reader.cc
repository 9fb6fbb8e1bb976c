// SPDX-License-Identifier: Apache-2.0
#include "pack/sample_reader.h"

#include <fmt/format.h>

#include "engine/read_now.h"

namespace headrace {

SampleReader::SampleReader(const Source& source, const Selection& selection,
                           const RecodeOptions& recode, UnitCache& units, uint64_t keep_bytes)
    : source_(source),
      selection_(selection),
      recode_(recode),
      units_(units),
      keep_bytes_(keep_bytes) {
  for (const PackedField& p : selection) fields_.push_back(p.source);
}

Status SampleReader::read(std::span<const uint64_t> samples,
                          const std::function<void(size_t, HeldRecord)>& take) {
  gather_.clear();
  const auto explain = [&](const Status& s, uint64_t n) { return s.of_sample(n, source_.key(n)); };
  for (const uint64_t n : samples)
    if (Status s = gather_.add(source_, {.sample = n, .fields = fields_, .want_key = true});
        !s.ok())
      return explain(s, n);
  gather_.plan_reads({}, &units_);
  read_now(gather_, units_);
  for (size_t i = 0; i < samples.size(); ++i) {
    Result<HeldRecord> held = record(i);
    if (!held.ok()) return explain(held.status(), samples[i]);
    take(i, std::move(held).value());
  }
  gather_.clear();  // lets go of the units
  if (units_.bytes() > keep_bytes_) units_.evict(units_.bytes() - keep_bytes_);
  return {};
}

Result<HeldRecord> SampleReader::record(size_t i) {
  HeldRecord out;
  out.key = gather_.key(i);
  for (uint32_t f = 0; f < selection_.size(); ++f) {
    for (size_t v = 0, n = gather_.values(i, f); v < n; ++v) {
      const Result<Bytes> value = gather_.value(i, f, v);
      const uint64_t begin = out.bytes.size();
      Status status = value.status();
      if (status.ok() && selection_[f].recode)
        status = recode(recode_, value.value(), out.bytes);
      else if (status.ok())
        out.bytes.insert(out.bytes.end(), value.value().begin(), value.value().end());
      if (!status.ok())
        return gather_.locate(
            status.with(fmt::format("field '{}'", source_.schema()[fields_[f]].name)), i, f, v);
      out.values.push_back({f, begin, out.bytes.size() - begin});
    }
  }
  out.bytes.shrink_to_fit();
  return out;
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/gather.h"
#include "index/source.h"
#include "pack/selection.h"

namespace headrace {

// A sample in memory of its own, on its way from the source to a shard.
struct HeldRecord {
  struct Value {
    uint32_t field = 0;  // of the selection
    uint64_t begin = 0;
    uint64_t length = 0;
  };
  std::string key;
  std::vector<Value> values;
  std::vector<std::byte> bytes;

  uint64_t memory() const {
    return sizeof(HeldRecord) + key.capacity() + values.capacity() * sizeof(Value) +
           bytes.capacity();
  }
};

// Reads samples of a source whole.  One thread at a time; `units` may be shared by several.
class SampleReader {
 public:
  // Opened units are kept in `units` up to `keep_bytes`.
  SampleReader(const Source& source, const Selection& selection, const RecodeOptions& recode,
               UnitCache& units, uint64_t keep_bytes);

  // Reads them together (neighbours in one read) and hands each to `take`, with its place in
  // `samples`.
  Status read(std::span<const uint64_t> samples,
              const std::function<void(size_t, HeldRecord)>& take);

 private:
  Result<HeldRecord> record(size_t i);

  const Source& source_;
  const Selection& selection_;
  const RecodeOptions& recode_;
  std::vector<uint32_t> fields_;
  UnitCache& units_;
  const uint64_t keep_bytes_;
  Gather gather_;
};

}  // namespace headrace

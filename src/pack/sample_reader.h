// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "engine/gather.h"
#include "format/format.h"
#include "index/source.h"

namespace headrace {

// Reads samples of a source whole, one after the other, into memory that it reuses.
// One thread at a time.
class SampleReader {
 public:
  // `fields` are numbers of the source's schema.
  SampleReader(const Source& source, std::vector<uint32_t> fields)
      : source_(source), fields_(std::move(fields)) {}

  // The record is valid until the next call.
  Result<Record> read(uint64_t sample);
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  Bytes keep(Bytes value);

  const Source& source_;
  const std::vector<uint32_t> fields_;
  Gather gather_;
  UnitCache units_;
  std::deque<std::vector<std::byte>> held_;
  std::vector<RecordValue> values_;
  uint64_t bytes_read_ = 0;
};

}  // namespace headrace

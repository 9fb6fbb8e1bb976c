// SPDX-License-Identifier: Apache-2.0
//
// Numbered entries, as OCR's data sets have them: a sample for each number.
//
//   image-000000001   label-000000001   num-samples
//   image-000000002   label-000000002
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "index/part_builder.h"

namespace headrace {

// Collects entries, and tells in the end whether they were such.  One thread at a time.
class NumberedEntries {
 public:
  void see(std::string_view key, const PartValue& value);
  // Every key is of this form but `num-samples`, and every number has each of several fields.
  bool fit() const;
  Result<PartPointer> finish(PartHead head);

 private:
  struct Entry {
    uint64_t number = 0;
    uint32_t field = 0;
    PartValue value = {};
  };
  uint32_t field(std::string_view name);

  std::vector<std::string> fields_;
  std::vector<uint64_t> counts_;  // of each field
  std::vector<Entry> entries_;
  bool others_ = false;
};

}  // namespace headrace

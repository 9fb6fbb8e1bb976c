// SPDX-License-Identifier: Apache-2.0
//
// Looking at all samples of a data set for a few cheap fields: what makes views.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "index/column.h"
#include "index/source.h"

namespace headrace {

struct ScanOptions {
  unsigned threads = 0;  // 0: as many as cores
  // (samples looked at, of how many); from any thread, one at a time
  std::function<void(uint64_t, uint64_t)> progress = {};
  const std::atomic<bool>* cancel = nullptr;
};

// The sample's key, unless the data have a field of that name.
inline constexpr std::string_view kKeyColumn = "key";

// Numbers and texts of samples [begin, end).  Fields that lie in the index cost no read; others
// (digits and texts in the members of a tar) are read.  Pictures, arrays and fields of several
// values are kInvalidArgument.
Result<std::vector<FieldColumn>> read_columns(const Source& source,
                                              const std::vector<std::string>& names, uint64_t begin,
                                              uint64_t end, const ScanOptions& options = {});

// Columns of all samples that are at hand already, by the name that an expression calls them.
using GivenColumns = std::map<std::string, const FieldColumn*, std::less<>>;

// The samples that fulfil the expression (index/expression.h), ascending.
Result<std::vector<uint64_t>> find_samples(const Source& source, std::string_view expression,
                                           const ScanOptions& options = {},
                                           const GivenColumns& given = {});

// The samples of each part of a split by key, ascending; what belongs to none is left out.
Result<std::vector<std::vector<uint64_t>>> split_by_key(const Source& source,
                                                        std::span<const double> shares,
                                                        uint64_t seed,
                                                        const ScanOptions& options = {});

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// SampleColumns: samples of any source as columns, in the order of a pack, for formats that hold
// columns rather than records.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "engine/unit_cache.h"
#include "index/source.h"
#include "pack/pack.h"
#include "pack/selection.h"
#include "plan/permutation.h"

namespace headrace {

// Values one after the other, and how long each is.
struct ValueColumn {
  Buffer bytes = {};
  std::vector<int64_t> lengths = {};
};

struct ColumnWave {
  std::vector<ValueColumn> fields;  // of schema()
  ValueColumn keys;
};

// One thread at a time; reads on several.
class SampleColumns {
 public:
  // Fields, their new names, the order and what becomes of pictures are those of the options.
  // A field that has several values in some sample is refused by name.
  static Result<std::unique_ptr<SampleColumns>> make(std::shared_ptr<const Source> source,
                                                     const PackOptions& options);

  Schema schema() const { return schema_of(selection_); }
  uint64_t size() const { return source_->size(); }
  // A sample, on average, from a few.
  Result<uint64_t> mean_bytes();

  // Places [begin, end) of the order.  A sample that lacks a field is an error that names it.
  Status read(uint64_t begin, uint64_t end, ColumnWave& out);

 private:
  SampleColumns(std::shared_ptr<const Source> source, Selection selection,
                const PackOptions& options);

  const std::shared_ptr<const Source> source_;
  const Selection selection_;
  const PackOptions options_;
  const unsigned threads_;
  Permutation order_;
  UnitCache units_;
};

}  // namespace headrace

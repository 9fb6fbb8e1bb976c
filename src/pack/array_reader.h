// SPDX-License-Identifier: Apache-2.0
//
// Regions of arrays read as they are stored, for writing them in other chunks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "array/array_source.h"
#include "storage/store.h"

namespace headrace {

// The variables of one or several files.  Immutable, hence thread-safe.
class ArrayReader {
 public:
  // Only files and variables of the description count.  Checks them as make_array_source() does.
  static Result<std::unique_ptr<const ArrayReader>> make(ArrayDescription description,
                                                         std::shared_ptr<const Store> store);

  // Over all files.
  Extents shape(size_t variable) const;
  DType dtype(size_t variable) const;

  // Whether read() unpacks the variable's numbers: its files are packed in different ways, so that
  // no one scale would serve for all.  dtype() is then what they become.
  bool unpacks(size_t variable) const;

  // The elements of the region, last axis fastest, little-endian, packed numbers as they are
  // unless it unpacks them.
  // Each chunk that it touches is read and opened once, on up to `threads` threads.
  Status read(size_t variable, const Region& region, unsigned threads, Buffer& out) const;

 private:
  ArrayReader(ArrayDescription d, std::shared_ptr<const Store> store)
      : d_(std::move(d)), store_(std::move(store)) {}

  const ArrayDescription d_;
  const std::shared_ptr<const Store> store_;
  std::vector<bool> unpacks_;  // of each variable
};

}  // namespace headrace

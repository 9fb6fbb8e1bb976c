// SPDX-License-Identifier: Apache-2.0
//
// Dataset: samples by number, in the calling thread.  What `hr.open` gives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "batch/column.h"
#include "engine/gather.h"
#include "engine/unit_cache.h"
#include "index/source.h"
#include "loader/field.h"

namespace headrace {

// One field of one sample; absent where the sample has no such field.
struct SampleValue {
  bool present = false;
  bool missing = false;             // the sample lacks it: the value, if any, is the default
  bool many = false;                // then `values` are what it has, and the rest is empty
  std::vector<SampleValue> values;  // none, one or several
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  SharedBuffer bytes;
};

// Thread-safe, and safe in a forked child: it has no threads, and reads by position.
class Dataset {
 public:
  // Without requests: every field as it lies.
  static Result<std::unique_ptr<Dataset>> make(std::shared_ptr<const Source> source,
                                               std::vector<FieldRequest> requests);

  const std::shared_ptr<const Source>& source() const { return source_; }
  const std::vector<FieldRequest>& requests() const { return requests_; }
  uint64_t size() const { return source_->size(); }

  // One value per request, in their order.  Random steps draw as in epoch 0 of seed 0.
  // Fields that were asked for must be there, or be optional, or have a default; fields as they lie
  // may be absent.
  Result<std::vector<SampleValue>> at(uint64_t sample) const;

 private:
  Dataset(std::shared_ptr<const Source> source, std::vector<FieldRequest> requests,
          bool as_they_lie)
      : source_(std::move(source)), requests_(std::move(requests)), as_they_lie_(as_they_lie) {}

  Status decode(Gather& gather, size_t c, SampleContext& context, SampleValue& out) const;
  bool is_missing(const Gather& gather, size_t c) const;
  Status read_npy_value(Gather& gather, size_t c, size_t v, SampleValue& out) const;

  const std::shared_ptr<const Source> source_;
  const std::vector<FieldRequest> requests_;
  const bool as_they_lie_;
  std::vector<FieldWork> works_;
  std::vector<uint32_t> fields_;  // those of works_ that are stored, for the source
  std::vector<size_t> place_;     // of works_: which of fields_
  std::vector<bool> own_types_;   // of works_: a .npy as it lies, of whatever type and shape
  bool want_key_ = false;
  std::shared_ptr<BufferPool> pool_;
  mutable UnitCache units_;
};

}  // namespace headrace

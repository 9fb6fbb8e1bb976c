// SPDX-License-Identifier: Apache-2.0
//
// RowMaker: a source that makes values right in their slots, of many samples at once, because they
// lie nowhere (objects in Python).  Asked for by a dynamic_cast of a Source.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "storage/store.h"

namespace headrace {

// Samples to make.  Handed over: the source has it until it moves it into done().
struct RowsToMake {
  struct Column {
    uint32_t field = 0;  // of Source::schema()
    MutableBytes slots;  // of the whole batch, one after the other
    size_t bytes = 0;    // of one slot
  };
  std::vector<uint64_t> samples;
  std::vector<uint32_t> slots;  // which slot of every column is whose, one for each sample
  std::vector<Column> columns;
  uint64_t priority = 0;                        // smaller goes first: the number of the batch
  std::shared_ptr<const ReadGroup> group = {};  // may be null
  std::vector<std::pair<size_t, Status>> failed = {};  // which of the samples, and why
  std::function<void(RowsToMake&&)> done = {};         // called exactly once, from any thread

  MutableBytes room(size_t column, size_t sample) const {
    const Column& c = columns[column];
    return c.slots.subspan(slots[sample] * c.bytes, c.bytes);
  }
  bool is_cancelled() const { return group != nullptr && group->is_cancelled(); }
};

// Immutable, hence thread-safe.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  // Whether it makes values of the field, as they would be stored.  Then make_rows() gives what
  // needs(), reading and a decoder that keeps the elements would.
  virtual bool makes_rows(uint32_t field) const = 0;
  // Fills the slots, later; a sample that fails is named with its cause.  Store::cancel() of the
  // source's store completes those of a group that wait, and those of a cancelled group complete
  // soon, unmade.
  virtual void make_rows(RowsToMake&& rows) const = 0;
  // How many samples of a batch of so many it wants in one make_rows().
  virtual size_t rows_together(size_t samples) const = 0;
};

}  // namespace headrace

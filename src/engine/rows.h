// SPDX-License-Identifier: Apache-2.0
//
// Rows: samples of one small size that are stored as they are (tokens, rows of an array).  A read,
// a request and a chunk for each would cost more than the sample, so the thread that decodes fills
// a run of slots at once, straight from memory that the store lends (Store::pin) or from the page
// cache, and plans the next step itself when it has nothing to fill.
//
//   places of all rows (Source::row_places)  ─►  addresses  ─►  copied or widened into the slots
//
// What is neither lent nor in the page cache goes the way of all other samples.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/chunk.h"
#include "engine/engine.h"

namespace headrace {

// How one column of one source is filled.
struct RowColumn {
  uint32_t field = 0;  // of the source's schema
  uint64_t bytes = 0;  // of a stored value
  Conversion types;
};
using RowColumns = std::vector<RowColumn>;  // one for each column

// Those of the source; none where some column is not made of rows.
std::optional<RowColumns> row_columns(const SourceWork& source,
                                      const std::vector<ColumnWork>& columns);

// One thread at a time; it keeps its memory, and what stores lend, for as long as it lives.
class RowFiller {
 public:
  // `rows`: of each source.
  RowFiller(const std::vector<SourceWork>& sources, const std::vector<RowColumns>& rows);

  // Fills all columns of the slots.  False: some bytes are neither lent nor in the page cache, and
  // the slots have to be filled by others, all of them.  `bad` is told of rows whose numbers the
  // column cannot hold.
  using Bad = std::function<void(size_t slot, Status why)>;
  Result<bool> fill(const SlotRange& slots, const Bad& bad);
  uint64_t bytes_filled() const { return bytes_; }  // by the last fill(), as stored

 private:
  struct File {
    bool was_asked = false;
    std::optional<Pin> lent;
  };
  Result<bool> fill_column(PlannedStep& step, size_t source, size_t c, const Bad& bad);
  bool find_lent(size_t source, const RowColumn& row);
  bool read_row(size_t source, const RowColumn& row, const RowPlace& place);
  Status explain(Status status, size_t source, const RowPlace& place, const ColumnSpec& spec) const;
  File& file_of(size_t source, uint32_t file);

  const std::vector<SourceWork>& sources_;
  const std::vector<RowColumns>& rows_;
  std::vector<std::vector<File>> files_;  // of each source
  uint64_t bytes_ = 0;
  // Scratch of a call.
  std::vector<uint64_t> samples_;
  std::vector<size_t> slots_;
  std::vector<RowPlace> places_;
  std::vector<const std::byte*> lent_;
  ReadRequest request_;  // keeps its path and memory
  size_t request_source_ = 0;
  uint32_t request_file_ = ~uint32_t{0};
};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Rows: samples of one small size that are stored as they are (tokens, rows of an array).  A read,
// a request and a chunk for each would cost more than the sample, so the thread that decodes fills
// a run of slots at once, straight from memory that the store lends (Store::pin) or from the page
// cache, and plans the next step itself when it has nothing to fill.
//
//   places of all rows (Source::row_places)  ─►  addresses  ─►  copied or widened into the slots
//
// What is neither lent nor in the page cache goes the way of all other samples.  Values that their
// source assembles from its index alone (positions and loss masks of tokens) are written beside.
//
// Rows may also be made by their source (index/row_maker.h): then the thread that decodes hands the
// slots over, and they come back filled, from whatever thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/chunk.h"
#include "engine/engine.h"

namespace headrace {

struct EngineWork;

// How one column of one source is filled.
struct RowColumn {
  uint32_t field = 0;  // of the source's schema
  uint64_t bytes = 0;  // of a stored value
  Conversion types;
  bool is_made = false;       // by the source, in its slot (RowMaker); nothing else is set then
  bool is_assembled = false;  // by the source, of nothing that is read; nothing else is set then
};
using RowColumns = std::vector<RowColumn>;  // one for each column

// Those of the source; none where some column is not made of rows.
std::optional<RowColumns> row_columns(const SourceWork& source,
                                      const std::vector<ColumnWork>& columns);

// One thread at a time; it keeps its memory, and what stores lend, for as long as it lives.
class RowFiller {
 public:
  explicit RowFiller(const EngineWork& work);

  // Fills all columns of the slots.  False: some bytes are neither lent nor in the page cache, and
  // the slots have to be filled by others, all of them.  Else `bad` is told of slots that have a
  // row whose numbers the column cannot hold, once of each.
  using Bad = std::function<void(size_t slot, Status why)>;
  Result<bool> fill(const SlotRange& slots, const Bad& bad);
  uint64_t bytes_filled() const { return bytes_; }  // by the last fill(), as stored

 private:
  struct File {
    bool was_asked = false;
    std::optional<Pin> lent;
  };
  Result<bool> fill_source(PlannedStep& step, size_t source);
  Result<bool> fill_column(PlannedStep& step, size_t source, size_t c);
  Result<bool> assemble(PlannedStep& step, size_t source);
  Status assemble_one(const SampleAsk& ask, const Source& source,
                      std::span<const MutableBytes> rooms);
  void note_bad(size_t i, Status why);
  bool find_lent(size_t source, const RowColumn& row);
  bool read_row(size_t source, const RowColumn& row, const RowPlace& place);
  Status explain(Status status, size_t source, const RowPlace& place, const ColumnSpec& spec) const;
  File& file_of(size_t source, uint32_t file);

  struct Assembled {
    std::vector<size_t> columns;
    std::vector<uint32_t> fields;  // one for each
  };

  const EngineWork& work_;
  const std::vector<SourceWork>& sources_;
  const std::vector<RowColumns>& rows_;
  std::vector<Assembled> assembled_;      // of each source
  std::vector<std::vector<File>> files_;  // of each source
  uint64_t bytes_ = 0;
  std::vector<std::pair<size_t, Status>> bad_;  // slots, of the call
  // Scratch of a call.
  std::vector<uint64_t> samples_;
  std::vector<size_t> slots_;
  std::vector<RowPlace> places_;
  std::vector<const std::byte*> lent_;
  std::vector<bool> is_bad_;  // one for each of the samples
  Request needs_;
  std::vector<PieceBytes> pieces_;
  std::vector<MutableBytes> rooms_;
  ReadRequest request_;  // keeps its path and memory
  size_t request_source_ = 0;
  uint32_t request_file_ = ~uint32_t{0};
};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Packed rows: the samples of a group one after the other in a row of one length.
//
//   samples     a a a | b b | c c c c          groups {0, 1}, {2}
//   rows        a a a b b - - -                tokens, filled up with the padding
//               c c c c - - - -
//   positions   0 1 2 0 1 0 1 2                i32 [rows, length], of each token in its sample
//   loss_mask   0 1 1 0 1 0 0 0                u8 [rows, length]: 0 for the first token of a
//   sample,
//                                              which nothing before it predicts, and for padding
//   cu_seqlens  0 3 5 8                        i32, a list: the borders; padding counts as one more
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batch/column.h"
#include "batch/stage.h"

namespace headrace {

struct RowPacking {
  uint64_t length = 0;  // of a row
  std::string column;   // whose lengths are those of the samples
  // The columns that become rows, with their padding, if they are lists of numbers with one axis;
  // the others stay one value a sample.
  std::vector<std::pair<std::string, PadNumber>> columns = {};
  bool keep_end = false;  // of a sample longer than a row, its end; else its beginning
};

// Columns that the stage adds after the others, in this order: those of positions, loss_mask and
// cu_seqlens whose name no column has.
std::vector<ColumnSpec> added_columns(const RowPacking& packing,
                                      std::span<const ColumnSpec> columns);

// Packs the groups of a batch (Batch::groups).  kInvalidArgument where a column is not there, or
// the one whose lengths count is no list of numbers with one axis.
Result<std::unique_ptr<BatchStage>> make_row_packing(const RowPacking& packing,
                                                     std::span<const ColumnSpec> columns);

}  // namespace headrace

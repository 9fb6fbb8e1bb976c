// SPDX-License-Identifier: Apache-2.0
//
// From the bytes of one field of one sample to its slot, whether it has one value or many.
#pragma once

#include "batch/column.h"
#include "engine/absent.h"
#include "engine/gather.h"

namespace headrace {

struct ValueWork {
  const Decoder& decoder;
  const ColumnSpec& spec;
  uint32_t field;                       // of the source's schema
  const AbsentValue* absent = nullptr;  // null: a sample without a value is bad
};

// Decodes what the i-th sample of `gather` has of its c-th field into slot `slot` of the column.
// The values of a column of several draw each for itself: the value's number joins the draws.
// Counts the bytes of the values.  A decoder whose inputs() is 0 gets all values of a field of
// several as its inputs, in one call.
Status decode_values(const ValueWork& work, const Source& source, Gather& gather, size_t i,
                     size_t c, SampleContext& context, ColumnBuilder& column, size_t slot,
                     uint64_t& bytes);

// The slot of a sample that lacks the field.
Status fill_absent(const ValueWork& work, SampleContext& context, ColumnBuilder& column,
                   size_t slot);

// Whether the value goes into its slot as the source assembles it.
bool assembles_into_slot(const ValueWork& work, const Source& source);

// Those of several columns of the i-th sample, all of which assembles_into_slot(), in one pass:
// what two of them need is decoded once.
struct AssembledColumn {
  ValueWork work;
  size_t c;  // of the gather's fields
  ColumnBuilder* column;
};
Status assemble_values(std::span<const AssembledColumn> columns, Gather& gather, size_t i,
                       size_t slot, uint64_t& bytes);

}  // namespace headrace

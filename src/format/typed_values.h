// SPDX-License-Identifier: Apache-2.0
//
// Values on their way into a format of NumPy's arrays: each keeps the type it has.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "format/format.h"
#include "index/varint.h"

namespace headrace {

bool is_number(Kind kind);
// Whose bytes are numbers of a known type, one behind the other.
bool is_typed_array(const Field& field);

// The type a number is written as: the one its source had.
DType type_of_number(const Field& field, Kind kind);
Status put_number(ByteVector& out, DType dtype, const RecordValue& value);

// Of a typed array of so many bytes; the extent that varies is told by them.
Result<std::vector<uint64_t>> shape_of(const Field& field, uint64_t bytes);

// Refuses types that NumPy does not have, by the name of the field.
Status numpy_can_hold(const Schema& schema);

}  // namespace headrace

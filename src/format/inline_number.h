// SPDX-License-Identifier: Apache-2.0
//
// Numbers on their way into a format that holds numbers.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "format/format.h"

namespace headrace {

// The value as the index holds it, or as a text of decimal digits says it, with white space
// around it or not.  Anything else is kCorrupt and names the field.
Result<int64_t> int_of(const RecordValue& value);
Result<double> float_of(const RecordValue& value);

// For formats that have 32 bits for it: rounded, and an error where that would be infinite.
Result<float> float32_of(const RecordValue& value);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Formats that hold lists of numbers and nothing else (TFRecord, RecordIO) keep a field in the
// index where no record of a shard has two of them.  Another shard of the same data may.
#pragma once

#include "index/schema.h"

namespace headrace {

// `number` in the index of one shard is what `list` is in others: a list of one.
bool is_list_of(const Field& number, const Field& list);

}  // namespace headrace

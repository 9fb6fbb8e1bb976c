// SPDX-License-Identifier: Apache-2.0
//
// What the fields of a pack are, beside its shards.  A tar or an LMDB knows names and bytes alone;
// the first line of headrace.json says what the bytes were where they came from:
//
//   {"headrace": 1, …, "shards": [
//   …  "fields": [{"name": "x", "kind": "array", "dtype": "f32", "shape": [2, null]}, …]
#pragma once

#include <string>

#include "index/schema.h"
#include "storage/store.h"

namespace headrace {

// The list, brackets included; null is an extent that the sample decides.
std::string packed_fields_text(const Schema& schema);

// `schema`, which shards in `folder` gave, with the kinds and types that the pack there tells and
// the shards do not.  Empty where there is no pack, or one that knows no more.
Schema described_by_pack(const Store& store, const std::string& folder, std::string_view format,
                         const Schema& schema);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// A schema on disk: in parts and in manifests.  Varints; per field:
//
//   name | kind u8 | storage u8 | many u8 | dtype + 1 (0: none) | axes, extent + 1 (0: varies) …
#pragma once

#include "index/schema.h"
#include "index/varint.h"

namespace headrace {

void put_schema(ByteVector& out, const Schema& schema);
// Fails the reader where the bytes are none.
Schema take_schema(ByteReader& in);

}  // namespace headrace

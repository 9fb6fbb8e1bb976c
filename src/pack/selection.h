// SPDX-License-Identifier: Apache-2.0
//
// Which fields of the source are packed, and as what.
#pragma once

#include <vector>

#include "base/status.h"
#include "format/format.h"
#include "index/schema.h"
#include "pack/pack.h"

namespace headrace {

struct PackedField {
  uint32_t source = 0;  // its number in the source's schema
  Field field;          // as it is written
  bool recode = false;
};

using Selection = std::vector<PackedField>;

// Unknown names are kInvalidArgument with the nearest; so are two fields of one name.
Result<Selection> select_fields(const Schema& schema, const PackOptions& options);
Schema schema_of(const Selection& selection);
// Whether the format can hold them; the error names what to drop.
Status check_holds(const Format& format, const Schema& schema);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Looking into samples: members of JSON values, and how large pictures are, as a column of all
// samples.  Pictures are read no further than their headers.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "index/column.h"
#include "index/source.h"
#include "loader/scan.h"

namespace headrace {

struct MemberQuery {
  std::vector<std::string> fields;  // stored names: the first that a sample has
  // "label" or "meta.label" of JSON; "width" or "height" of pictures, as stored, before any EXIF
  // orientation.
  std::string member;
};

// Numbers, booleans (as 0 and 1) and texts; null and what is not there is absent.  A member that is
// a number in one sample and a text in another, and lists and objects, are kInvalidArgument.
Result<FieldColumn> read_members(const Source& source, const MemberQuery& query,
                                 const ScanOptions& options = {});

}  // namespace headrace

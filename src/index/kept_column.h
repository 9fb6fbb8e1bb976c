// SPDX-License-Identifier: Apache-2.0
//
// A column that was read once, kept in a file so that the next look at it costs nothing.
//
//   offset  0           8          12        16        24        40
//           +-----------+----------+---------+---------+---------+---------+--------+--------+
//           | hrcolumn  | u32 1    | u32 type| u64 rows| stamp   | there   | values | crc32c |
//           +-----------+----------+---------+---------+---------+---------+--------+--------+
//
// Little-endian.  there: a byte a row.  values: i64 or f64 a row; of texts a u64 a row where each
// ends, then their bytes.  The checksum is of all before it.  The stamp names the data (sizes and
// times of all files) and the column: a file with another one is as good as none.
#pragma once

#include <string>

#include "base/hash.h"
#include "base/status.h"
#include "index/column.h"
#include "index/indexed_source.h"

namespace headrace {

// What `column` of the data is true for: changes with the size or time of any file.
Result<Hash128> column_stamp(const IndexedSource& source, const std::string& column);

// Where it is kept: beside the first shard.
std::string kept_column_path(const IndexedSource& source, const std::string& column);

Status write_column(const std::string& path, const Hash128& stamp, const FieldColumn& column);
// kNotFound where it is not there, of other data, or damaged.
Result<FieldColumn> read_column(const std::string& path, const Hash128& stamp);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// What must be known of a Parquet footer before a library is let at it: whether columns are
// encrypted (pyarrow throws through whoever touches one), and whether its counts can be.
//
//   FileMetaData, in Thrift's compact protocol
//     2 schema: [SchemaElement]   3 num_rows   4 row_groups: [RowGroup]   8 encryption_algorithm
//     RowGroup      1 columns: [ColumnChunk]   3 num_rows
//     ColumnChunk   3 meta_data: ColumnMetaData   8 crypto_metadata   9 encrypted_column_metadata
//     ColumnMetaData  3 path_in_schema   5 num_values   6, 7 bytes   9 data_page_offset
//
// The parser is bounded: it reads each byte once, and believes no length that the footer does not
// hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

struct ParquetFooter {
  uint64_t rows = 0;                   // of all row groups
  std::vector<std::string> encrypted;  // columns, by their path; "column 3" where that is hidden
  bool is_encrypted = false;           // it says how, whether or not a column is
};

// `footer` are the bytes before the length and the magic, at `offset` of a file of `file_bytes`.
// kCorrupt where it does not parse, a count is negative, or a column begins outside of the file.
Result<ParquetFooter> parse_parquet_footer(Bytes footer, uint64_t offset, uint64_t file_bytes);

}  // namespace headrace

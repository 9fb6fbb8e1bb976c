// SPDX-License-Identifier: Apache-2.0
//
// NetCDF classic (CDF-1, CDF-2 and CDF-5): what variables a file has and where their elements lie.
//
//   'C' 'D' 'F' version | records | dimensions | attributes | variables | data
//
//   dimension   name, length (0: the record dimension, which grows)
//   attribute   name, type, count, values
//   variable    name, count of dimensions, their numbers, attributes, type, size, begin
//
// All big-endian; names and values are filled up to 4 bytes.  Counts, lengths and sizes have 4
// bytes, in CDF-5 8; begins have 4 bytes in CDF-1, else 8.  The elements of a variable without the
// record dimension lie together from `begin` on.  Those of the others lie record by record:
//
//   | a[0] b[0] | a[1] b[1] | a[2] b[2] | …
//
// each slab filled up to 4 bytes, except where there is one such variable alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "storage/store.h"

namespace headrace {

struct NetcdfAttribute {
  std::string name;
  std::optional<DType> dtype;     // nothing for texts
  std::vector<std::byte> values;  // as they lie in the file: big-endian
};

struct NetcdfVariable {
  std::string name;
  std::vector<size_t> dims;  // numbers of NetcdfFile::dimensions
  std::vector<int64_t> shape;
  std::optional<DType> dtype;  // nothing for texts
  std::vector<NetcdfAttribute> attributes;
  bool has_records = false;  // its first axis is the record dimension
  uint64_t begin = 0;
  uint64_t bytes = 0;   // from there on: of all of it, or of one record
  uint64_t stride = 0;  // from one record to the next; 0 without records
};

struct NetcdfFile {
  int version = 1;  // 1, 2 or 5
  std::vector<std::string> dimensions;
  std::vector<NetcdfAttribute> attributes;
  std::vector<NetcdfVariable> variables;
};

// By the first bytes of a file.
bool is_netcdf_classic(Bytes head);

// `head` is the beginning of a file of `file_bytes`; `wants_more` is set where the header goes on
// behind it.  Every place that is given lies within the file: a file that was cut off is kCorrupt.
Result<NetcdfFile> parse_netcdf_classic(Bytes head, uint64_t file_bytes, bool& wants_more);

// Reads as much of the file as its header takes.
Result<NetcdfFile> read_netcdf_classic(const Store& store, const std::string& path);

}  // namespace headrace

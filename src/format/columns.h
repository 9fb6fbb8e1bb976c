// SPDX-License-Identifier: Apache-2.0
//
// What MDS and LitData share: a sample is the sizes of its columns and then the columns.
//
//   | u32 bytes of each column that has no fixed size | column | column | …
//
// Little-endian.  Nothing here does I/O: bytes come through ReadBytes, from a file or from an
// opened unit, and places are offsets in there.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "format/array_value.h"
#include "index/schema.h"

namespace headrace {

enum class Reading : uint8_t {
  kPlace,     // the bytes are the value
  kNumber,    // goes into the index: StoredColumn::dtype says how it is stored
  kDigits,    // a float as text: goes into the index
  kConvert,   // an array with its type and shape before it: becomes .npy
  kPictures,  // a list of values: | u32 count | u32 bytes of each | values |
};

// Openings of a value that converts; what else a format opens begins above.
enum ArrayOpening : uint32_t {
  kNdarray = 1,      // MDS: | u8 type | u8 axes, width | shape | elements |
  kRawPicture = 2,   // PIL
  kTorchTensor = 3,  // LitData: big-endian | u32 type | u32 axes | u32 shape | elements |
  kNumpyArray = 4,   // LitData: the same little-endian, with other numbers of types
  kTyped = 16,       // plus a DType: MDS, the type fixed: | u8 axes, width | shape | elements |
  kAfterArrays = 64,
};

struct StoredColumn {
  Field field;
  Reading reading = Reading::kPlace;
  std::optional<uint64_t> fixed = {};  // bytes; else each sample says
  DType dtype = DType::kU8;            // of kNumber
  uint32_t encoding = 0;               // of kConvert, and of each value of kPictures, or 0
  uint64_t list_skip = 0;              // bytes before the count of kPictures
  bool is_key = false;
};

struct Extent {
  uint64_t begin = 0;
  uint64_t length = 0;
};

struct ColumnValue {
  Extent place;
  bool converts = false;
  ArrayHead array = {};
};

// Precondition: within the bytes there are.  Valid until the next call.
using ReadBytes = std::function<Status(uint64_t offset, uint64_t length, Bytes& out)>;

// Of bytes that are all in memory, and stay there.
ReadBytes reads_from(Bytes all);

// Where the columns of the sample in `sample` lie.  They fill it, or kCorrupt.
Status locate_columns(std::span<const StoredColumn> columns, Extent sample, const ReadBytes& read,
                      std::vector<Extent>& out);

// The values of a column that lies there: one, or as many as a list has.
Status column_values(const StoredColumn& column, Extent place, const ReadBytes& read,
                     std::vector<ColumnValue>& out);

// A number as the index holds it; kUnsupported where int64 cannot.
struct Number {
  bool is_float = false;
  int64_t whole = 0;
  double real = 0;
};
Status load_number(DType dtype, Bytes bytes, Number& out);

// The number that MDS gives a type of NumPy, "<f4"; 0: it has none.
unsigned mds_type_number(std::string_view descr);

// Type and shape that stand before an array.  `head`: the first kMostArrayHead bytes of the
// value, or all of it.
Status parse_array(uint32_t encoding, Bytes head, ArrayHead& out);
// decode_unit() of a value that converts.
Status open_array(uint32_t encoding, Bytes stored, uint64_t decoded_bytes, Buffer& decoded);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Types and fill values of Zarr's metadata, as arrays here have them.
//
//   version 2   "<f4", "|b1", "<M8[ns]", "|S5": as NumPy writes them
//   version 3   "float32", "bool", {"name": "numpy.datetime64", "configuration": {"unit": "ns"}}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "array/file_array.h"
#include "base/json.h"

namespace headrace {

struct ZarrType {
  char kind = 'V';  // b i u f c S M m as NumPy's; O: texts of any length; V: no type of ours
  bool big_endian = false;
  uint32_t item_bytes = 0;
  std::string unit;       // of dates and spans: "ns"
  int64_t unit_step = 1;  // "[25s]"

  // Of the numbers; of dates i64, of complex numbers that of a part, of texts u8.  Nothing: there
  // is none.
  std::optional<DType> dtype() const;
};

// Of "dtype" in .zarray.
ZarrType zarr_type2(const Json& dtype);
// Of "data_type" in zarr.json.
Result<ZarrType> zarr_type3(const Json& data_type);

// Sets the type.  Complex numbers and texts of fixed length get an inner axis more; dates say their
// units in `said`.  `why` of the array says what cannot be.
void take_zarr_type(const ZarrType& type, FileArray& out, Tree& said);

// A number of metadata: what JSON has, "NaN", "Infinity", "-Infinity", and digits in a text.
std::optional<double> zarr_number(const Json& value);
// One element as it is stored; empty: none is said.  kCorrupt where the value is no such element.
Result<std::vector<std::byte>> zarr_fill(const Json* value, const ZarrType& type, bool big_endian);

}  // namespace headrace

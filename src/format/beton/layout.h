// SPDX-License-Identifier: Apache-2.0
//
// FFCV's .beton, version 2.
//
//   0        24                     24 + 1041 f          padded to pages      alloc_table      end
//   +--------+----------------------+--------------------+- - - - - - - - - - -+----------------+
//   | header | f field descriptors  | n rows of metadata | pages: the values   | of allocations |
//   +--------+----------------------+--------------------+- - - - - - - - - - -+----------------+
//
//   header       u16 version, u16 fields, u32 page size, u64 samples, u64 where the allocations are
//   descriptor   u8 type, 16 bytes name, 1024 bytes arguments
//   row          each field's own: a number, or where its value lies; aligned as a C struct, those
//                of several members as bytes
//   allocation   u64 sample, u64 offset, u64 bytes: one for each value that lies in a page
//
// Little-endian.  There is no checksum; that there is an allocation for every value tells a cut.
#pragma once

#include <string>
#include <vector>

#include "format/format.h"

namespace headrace {

inline constexpr uint64_t kBetonHeader = 24;
inline constexpr uint64_t kBetonDescriptor = 1041;
inline constexpr uint64_t kBetonAllocation = 24;

// The numbers are on disk.
enum class BetonType : uint8_t {
  kFloat = 0,
  kInt = 1,
  kImage = 2,
  kBytes = 3,
  kArray = 4,
  kJson = 5,
  kTensor = 6,
  kCustom = 255,
};

struct BetonField {
  BetonType type = BetonType::kInt;
  std::string name;
  uint64_t in_row = 0;  // where its metadata begin
  // Of arrays.
  std::optional<DType> dtype = {};  // none: a type that we do not have
  std::string type_text = {};       // as NumPy writes it
  std::vector<int64_t> shape = {};
  uint64_t bytes = 0;

  bool lies_in_pages() const { return type != BetonType::kFloat && type != BetonType::kInt; }
};

struct BetonLayout {
  uint64_t samples = 0;
  uint64_t rows_at = 0;
  uint64_t row_bytes = 0;
  uint64_t allocations_at = 0;
  std::vector<BetonField> fields;
};

bool looks_like_beton(Bytes head);
// Header and descriptors; all tables are then known to lie within the file.
Result<BetonLayout> read_beton_layout(const ShardInput& shard);

}  // namespace headrace

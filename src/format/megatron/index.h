// SPDX-License-Identifier: Apache-2.0
//
// How the index of a Megatron pair lies: x.idx beside x.bin, which holds nothing but tokens.
//
//   MMIDIDX    | "MMIDIDX\0\0" | u64 version 1 | u8 type | u64 n sequences | u64 m |
//              | i32 length x n | i64 begin in bytes x n | i64 document x m | i8 mode x n, or not |
//   TNTIDX     | "TNTIDX\0\0" | u64 version 1 | u64 type | u64 bytes of an element | u64 n | u64 s
//   |
//              | u64 m | i64 first size x (n+1) | i64 begin in elements x (n+1) | i64 size x s |
//              | i64 document x m |
//
// Little-endian.  Document d has the sequences [document[d], document[d+1]).  fairseq writes both
// without m and without documents; the length of the file tells.
#pragma once

#include <optional>
#include <string_view>

#include "base/dtype.h"
#include "base/status.h"
#include "format/format.h"
#include "format/header_window.h"

namespace headrace {

inline constexpr std::string_view kMmapMagic{"MMIDIDX\0\0", 9};
inline constexpr std::string_view kLegacyMagic{"TNTIDX\0\0", 8};
inline constexpr uint64_t kMegatronVersion = 1;
inline constexpr uint64_t kMmapHead = 34;
inline constexpr uint64_t kLegacyHead = 56;

// The type that a code means, as Megatron-Core numbers them; nothing where there is none.
std::optional<DType> megatron_dtype(uint64_t code);
// 0 where Megatron has none for it.
uint8_t megatron_code(DType dtype);

// Where the arrays of an index lie.  Made by read_layout(), which checks the file's length.
struct MegatronLayout {
  DType dtype = DType::kI32;
  bool is_legacy = false;
  uint64_t sequences = 0;
  uint64_t documents = 0;
  bool has_documents = false;  // else each sequence is one
  uint64_t lengths_at = 0;     // i32; legacy: i64
  uint64_t begins_at = 0;      // i64 bytes; legacy: n+1 of elements
  uint64_t sizes_at = 0;       // legacy: where the sizes of each sequence begin, n+1
  uint64_t documents_at = 0;   // documents + 1 of them
  uint64_t modes_at = 0;       // 0: there are none
};
Result<MegatronLayout> read_layout(const ShardInput& shard, HeaderWindow& window);

// megatron_writer.cc
Status megatron_can_hold(const Schema& schema);
Result<std::unique_ptr<Writer>> make_megatron_writer(ShardOutput out);

}  // namespace headrace

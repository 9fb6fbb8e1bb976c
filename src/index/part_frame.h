// SPDX-License-Identifier: Apache-2.0
//
// The first 32 bytes of a part (see part.h), as they lie.
#pragma once

#include <array>
#include <cstdint>

namespace headrace {

using PartMagic = std::array<char, 8>;
// As PNG's: a transfer that changes line ends or strips the high bit breaks it.
inline constexpr PartMagic kPartMagic = {'\x89', 'H', 'R', 'I', 'D', 'X', '\r', '\n'};

struct PartFrame {
  PartMagic magic = kPartMagic;
  uint32_t version = 0;
  uint32_t crc = 0;         // of the head, from kCheckedFrom
  uint64_t head_bytes = 0;  // including this frame and the directories
  uint64_t total_bytes = 0;
};
static_assert(sizeof(PartFrame) == 32);

inline constexpr uint64_t kCheckedFrom = 16;
inline constexpr uint64_t kEntryBytes = 12;  // u64 offset, u32 crc

}  // namespace headrace

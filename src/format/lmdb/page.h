// SPDX-License-Identifier: Apache-2.0
//
// How LMDB's pages lie (data version 1, 64 bits, little-endian).
//
//   page     | u64 number | u16 pad | u16 flags | u16 lower, u16 upper | …
//            of an overflow run: u32 pages in the place of lower and upper, then the value
//   meta     page head | u32 magic | u32 version | u64 address | u64 map bytes |
//            tree of free pages | main tree | u64 last page | u64 transaction
//   tree     | u32 pad | u16 flags | u16 depth | u64 branch, leaf, overflow pages, entries, root |
//            the pad of the tree of free pages is the page size
//   leaf,    page head | u16 place of each node … lower | room | upper … nodes, from the end
//   branch
//   node     | u16 low | u16 high | u16 flags | u16 key bytes | key | value |
//            leaf: low, high are the value's bytes; big: the value is the u64 number of its run
//            branch: low, high, flags are the number of the page below; the first key is empty
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace headrace {

inline constexpr uint32_t kLmdbMagic = 0xbeefc0de;
inline constexpr uint32_t kLmdbVersion = 1;
inline constexpr uint64_t kLmdbPageHead = 16;
inline constexpr uint64_t kLmdbNodeHead = 8;
inline constexpr uint64_t kLmdbMetaBytes = 136;  // behind the page head
inline constexpr uint64_t kLmdbMetaPages = 2;    // written in turn
inline constexpr uint64_t kLmdbMaxKey = 511;     // as LMDB is built
inline constexpr uint64_t kLmdbNoPage = ~uint64_t{0};
inline constexpr uint32_t kLmdbMaxDepth = 32;

enum LmdbPageFlag : uint16_t {
  kLmdbBranch = 0x01,
  kLmdbLeaf = 0x02,
  kLmdbOverflow = 0x04,
  kLmdbMeta = 0x08,
  kLmdbLeaf2 = 0x20,
  kLmdbSubPage = 0x40,
};
// Which of them say what a page is; the others are of the writer's business.
inline constexpr uint16_t kLmdbPageKinds = 0x6f;

enum LmdbNodeFlag : uint16_t { kLmdbBigData = 0x01, kLmdbSubData = 0x02, kLmdbDupData = 0x04 };

enum LmdbTreeFlag : uint16_t {
  kLmdbReverseKey = 0x02,
  kLmdbDupSort = 0x04,
  kLmdbIntegerKey = 0x08,
};

// As it lies in a meta page, and as the value of a node that is a sub-database.
struct LmdbTree {
  uint32_t pad = 0;
  uint16_t flags = 0;
  uint16_t depth = 0;
  uint64_t branch_pages = 0;
  uint64_t leaf_pages = 0;
  uint64_t overflow_pages = 0;
  uint64_t entries = 0;
  uint64_t root = kLmdbNoPage;
};
static_assert(sizeof(LmdbTree) == 48);

struct LmdbMeta {
  uint32_t magic = kLmdbMagic;
  uint32_t version = kLmdbVersion;
  uint64_t address = 0;
  uint64_t map_bytes = 0;
  LmdbTree free = {};
  LmdbTree main = {};
  uint64_t last_page = 1;
  uint64_t transaction = 0;
};
static_assert(sizeof(LmdbMeta) == kLmdbMetaBytes);

struct LmdbPageHead {
  uint64_t number = 0;
  uint16_t pad = 0;
  uint16_t flags = 0;
  uint16_t lower = 0;  // of an overflow run: the low half of its pages
  uint16_t upper = 0;
  uint32_t pages() const { return uint32_t{lower} | uint32_t{upper} << 16; }
};
static_assert(sizeof(LmdbPageHead) == kLmdbPageHead);

struct LmdbNodeHead {
  uint16_t low = 0;
  uint16_t high = 0;
  uint16_t flags = 0;
  uint16_t key_bytes = 0;
  uint32_t value_bytes() const { return uint32_t{low} | uint32_t{high} << 16; }
  uint64_t page() const { return uint64_t{value_bytes()} | uint64_t{flags} << 32; }
};
static_assert(sizeof(LmdbNodeHead) == kLmdbNodeHead);

// How many pages a value of its own takes.
constexpr uint64_t lmdb_run_pages(uint64_t value_bytes, uint64_t page_bytes) {
  return (kLmdbPageHead - 1 + value_bytes) / page_bytes + 1;
}

}  // namespace headrace

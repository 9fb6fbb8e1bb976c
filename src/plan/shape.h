// SPDX-License-Identifier: Apache-2.0
//
// The shape of an order: how far it mixes.  It follows from the index alone,
// never from the number of ranks or from where the data lies, and is kept in the
// state, so that a later rule changes no running order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headrace {

// What the user asks for: True, False, "global", "pool".
enum class Shuffle : unsigned char { kAuto, kNone, kGlobal, kPool };

// What it comes to.  The numbers are in states: they may not change.
enum class OrderMode : unsigned char { kNone = 0, kGlobal = 1, kPool = 2 };

struct OrderShape {
  OrderMode mode = OrderMode::kNone;
  uint32_t lanes = 1;  // L, a power of two; 1 unless mode is kPool
  uint64_t pool = 1;   // P, samples of a pool; 1 unless mode is kPool
  bool operator==(const OrderShape&) const = default;
};

inline constexpr uint32_t kMaxLanes = 65536;

// One source as the index counts it.
struct SourceSize {
  uint64_t samples = 0;
  uint64_t filled_blocks = 0;  // empty ones would make the pools too small
  uint64_t bytes = 0;
  bool shared = false;  // samples of a block share what is read and opened as a whole
};

// The shapes of sources that are mixed: one mode and one L for all, a P for each.
//   mode     kAuto: global up to 16 GiB in all, pool above; where samples share what opens as a
//            whole, up to 512 MiB: drawn from everywhere, each would open a row group
//   P        two mean blocks of the source
//   window   bytes/32 of all sources, at most 16 GiB, at least 512 MiB for each source;
//            or what the user sets
//   L        window / (one pool of each source), to the nearest power of two,
//            1 to 65,536 and no more than there are pools
std::vector<OrderShape> choose_shapes(std::span<const SourceSize> sources, Shuffle shuffle,
                                      std::optional<uint64_t> window_bytes = {});

OrderShape choose_shape(const SourceSize& source, Shuffle shuffle,
                        std::optional<uint64_t> window_bytes = {});

}  // namespace headrace

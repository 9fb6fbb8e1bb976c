// SPDX-License-Identifier: Apache-2.0
#include "plan/shape.h"

#include <algorithm>
#include <bit>

namespace headrace {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kGlobalLimit = 16 * kGiB;
constexpr uint64_t kMinWindow = 512 * kMiB;  // 64 pools of two 4 MiB blocks
constexpr uint64_t kMaxWindow = 16 * kGiB;
constexpr uint64_t kWindowShare = 32;  // a window is 1/32 of the data
constexpr uint64_t kPoolBlocks = 2;

// n/d to the nearest, at least 1; a divisor of 0 counts as 1.
uint64_t divide(uint64_t n, uint64_t d) {
  d = std::max<uint64_t>(d, 1);
  return std::max<uint64_t>(n / d + (n % d >= d - d / 2), 1);
}

uint64_t nearest_power_of_two(uint64_t n) {
  const uint64_t floor = std::bit_floor(n);
  return n - floor >= floor / 2 && floor > 1 ? 2 * floor : floor;
}

OrderMode choose_mode(Shuffle shuffle, uint64_t bytes, bool shared) {
  switch (shuffle) {
    case Shuffle::kNone:
      return OrderMode::kNone;
    case Shuffle::kGlobal:
      return OrderMode::kGlobal;
    case Shuffle::kPool:
      return OrderMode::kPool;
    case Shuffle::kAuto:
      break;
  }
  return bytes <= (shared ? kMinWindow : kGlobalLimit) ? OrderMode::kGlobal : OrderMode::kPool;
}

uint32_t choose_lanes(uint64_t window, uint64_t pool_bytes, uint64_t pools) {
  const uint64_t lanes = std::min({divide(window, pool_bytes), pools, uint64_t{kMaxLanes}});
  return static_cast<uint32_t>(std::min<uint64_t>(nearest_power_of_two(lanes), kMaxLanes));
}

}  // namespace

std::vector<OrderShape> choose_shapes(std::span<const SourceSize> sources, Shuffle shuffle,
                                      std::optional<uint64_t> window_bytes) {
  uint64_t bytes = 0;
  bool shared = false;
  for (const SourceSize& s : sources) {
    bytes += s.bytes;
    shared = shared || s.shared;
  }
  const OrderMode mode = choose_mode(shuffle, bytes, shared);
  std::vector<OrderShape> shapes(sources.size(), OrderShape{.mode = mode});
  if (mode != OrderMode::kPool) return shapes;

  uint64_t pool_bytes = 0;
  uint64_t pools = 1;
  for (size_t k = 0; k < sources.size(); ++k) {
    const SourceSize& s = sources[k];
    shapes[k].pool = divide(kPoolBlocks * s.samples, s.filled_blocks);
    pool_bytes += divide(kPoolBlocks * s.bytes, s.filled_blocks);
    pools = std::max(pools, s.samples / shapes[k].pool);
  }
  const uint64_t low = kMinWindow * sources.size();
  const uint64_t window =
      window_bytes.value_or(std::max(low, std::min(bytes / kWindowShare, kMaxWindow)));
  const uint32_t lanes = choose_lanes(window, pool_bytes, pools);
  for (OrderShape& shape : shapes) shape.lanes = lanes;
  return shapes;
}

OrderShape choose_shape(const SourceSize& source, Shuffle shuffle,
                        std::optional<uint64_t> window_bytes) {
  return choose_shapes(std::span(&source, 1), shuffle, window_bytes).front();
}

}  // namespace headrace

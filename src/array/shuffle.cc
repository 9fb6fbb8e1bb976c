// SPDX-License-Identifier: Apache-2.0
#include "array/shuffle.h"

#include <hwy/highway.h>

#include <algorithm>

namespace headrace {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Bytes8 = hn::ScalableTag<uint8_t>;
using Pairs = hn::Repartition<uint16_t, Bytes8>;

const uint8_t* plane(Bytes in, size_t b, size_t n) {
  return reinterpret_cast<const uint8_t*>(in.data()) + b * n;
}

// As many elements at a time as a register has bytes; says how many it did.
size_t merge_2(Bytes in, uint8_t* to, size_t n) {
  const Bytes8 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreInterleaved2(hn::LoadU(d, plane(in, 0, n) + i), hn::LoadU(d, plane(in, 1, n) + i), d,
                          to + 2 * i);
  return i;
}

size_t merge_4(Bytes in, uint8_t* to, size_t n) {
  const Bytes8 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreInterleaved4(hn::LoadU(d, plane(in, 0, n) + i), hn::LoadU(d, plane(in, 1, n) + i),
                          hn::LoadU(d, plane(in, 2, n) + i), hn::LoadU(d, plane(in, 3, n) + i), d,
                          to + 4 * i);
  return i;
}

// Pairs of bytes first, then four pairs.
size_t merge_8(Bytes in, uint8_t* to, size_t n) {
  const Pairs pairs;
  const hn::Half<Bytes8> d;  // their pairs fill a register
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto pair = [&](size_t b) {
      const auto low = hn::PromoteTo(pairs, hn::LoadU(d, plane(in, b, n) + i));
      const auto high = hn::PromoteTo(pairs, hn::LoadU(d, plane(in, b + 1, n) + i));
      return hn::Or(low, hn::ShiftLeft<8>(high));
    };
    hn::StoreInterleaved4(pair(0), pair(2), pair(4), pair(6), pairs,
                          reinterpret_cast<uint16_t*>(to + 8 * i));
  }
  return i;
}

}  // namespace

void undo_shuffle(Bytes in, MutableBytes out, size_t item) {
  const size_t n = in.size() / std::max<size_t>(1, item);
  if (item < 2 || n < 2) {
    std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  auto* to = reinterpret_cast<uint8_t*>(out.data());
  const size_t done = item == 2   ? merge_2(in, to, n)
                      : item == 4 ? merge_4(in, to, n)
                      : item == 8 ? merge_8(in, to, n)
                                  : 0;
  for (size_t b = 0; b < item; ++b)
    for (size_t i = done; i < n; ++i) out[i * item + b] = in[b * n + i];
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(n * item), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(n * item));
}

}  // namespace headrace

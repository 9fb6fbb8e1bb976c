// SPDX-License-Identifier: Apache-2.0
#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/jpeg_marks.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include "codec/jpeg_marks.h"

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Each byte is compared with its neighbour, two vectors at a time: a 0xff that is data costs
// nothing, and there is one in 256 bytes.
size_t find(const uint8_t* data, size_t at, size_t size) {
  const hn::CappedTag<uint8_t, 32> all;
  const size_t lanes = hn::Lanes(all);
  const auto full = hn::Set(all, 0xff);
  const auto zero = hn::Zero(all);
  const auto marks = [&](size_t i) {
    return hn::And(hn::Eq(hn::LoadU(all, data + i), full),
                   hn::Ne(hn::LoadU(all, data + i + 1), zero));
  };
  for (; at + 2 * lanes + 1 <= size; at += 2 * lanes)
    if (!hn::AllFalse(all, hn::Or(marks(at), marks(at + lanes)))) break;
  for (; at + 1 < size; ++at)
    if (data[at] == 0xff && data[at + 1] != 0) return at;
  return size;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
namespace {
HWY_EXPORT(find);
}

size_t find_mark(Bytes data, size_t at) {
  return HWY_DYNAMIC_DISPATCH(find)(reinterpret_cast<const uint8_t*>(data.data()), at, data.size());
}

}  // namespace headrace
#endif

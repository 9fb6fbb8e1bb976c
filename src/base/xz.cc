// SPDX-License-Identifier: Apache-2.0
#include "base/xz.h"

#include "base/have.h"

#if HEADRACE_HAVE_LibLZMA

#include <fmt/format.h>
#include <lzma.h>

namespace headrace {
namespace {

// The dictionary's size stands in the data: it is allocated before a byte is unpacked.
constexpr uint64_t kMostMemory = uint64_t{32} << 20;

}  // namespace

Result<size_t> unpack_xz(Bytes packed, MutableBytes out) {
  uint64_t limit = kMostMemory;
  size_t taken = 0;
  size_t filled = 0;
  const lzma_ret got = lzma_stream_buffer_decode(
      &limit, 0, nullptr, reinterpret_cast<const uint8_t*>(packed.data()), &taken, packed.size(),
      reinterpret_cast<uint8_t*>(out.data()), &filled, out.size());
  if (got != LZMA_OK)
    return corrupt(
        fmt::format("data in xz do not unpack (liblzma's code {})", static_cast<int>(got)));
  return filled;
}

}  // namespace headrace

#else

namespace headrace {

Result<size_t> unpack_xz(Bytes, MutableBytes) {
  return unsupported("this build cannot unpack xz: install liblzma-dev and build again");
}

}  // namespace headrace

#endif

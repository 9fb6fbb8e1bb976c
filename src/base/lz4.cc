// SPDX-License-Identifier: Apache-2.0
#include "base/lz4.h"

#include "base/have.h"

#if HEADRACE_HAVE_LZ4

#include <lz4.h>

#include <climits>

namespace headrace {

Result<size_t> unpack_lz4(Bytes packed, MutableBytes out) {
  if (packed.size() > INT_MAX || out.size() > INT_MAX)
    return corrupt("a block in lz4 has less than 2 GiB");
  const int got = LZ4_decompress_safe(
      reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(out.data()),
      static_cast<int>(packed.size()), static_cast<int>(out.size()));
  if (got < 0) return corrupt("data in lz4 do not unpack");
  return static_cast<size_t>(got);
}

}  // namespace headrace

#else

namespace headrace {

Result<size_t> unpack_lz4(Bytes, MutableBytes) {
  return unsupported("this build cannot unpack lz4: install liblz4-dev and build again");
}

}  // namespace headrace

#endif

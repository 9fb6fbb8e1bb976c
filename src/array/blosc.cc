// SPDX-License-Identifier: Apache-2.0
#include "array/blosc.h"

#include "base/have.h"

#if HEADRACE_HAVE_BLOSC
#include <blosc.h>
#endif

namespace headrace {

#if HEADRACE_HAVE_BLOSC
Result<size_t> unpack_blosc(Bytes frame, MutableBytes out) {
  size_t size = 0;
  if (frame.size() < 16 || blosc_cbuffer_validate(frame.data(), frame.size(), &size) < 0)
    return corrupt("no Blosc frame, or one that is cut short");
  if (size > out.size()) return corrupt("a Blosc frame that opens to more than its chunk holds");
  if (size == 0) return size_t{0};
  const int got = blosc_decompress_ctx(frame.data(), out.data(), out.size(), 1);
  if (got < 0) return corrupt("a Blosc frame that does not open");
  return static_cast<size_t>(got);
}
#else
Result<size_t> unpack_blosc(Bytes, MutableBytes) {
  return unsupported("this build has no Blosc: apt-get install libblosc-dev and build again");
}
#endif

}  // namespace headrace

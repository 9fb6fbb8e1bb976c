// SPDX-License-Identifier: Apache-2.0
#include "base/lz4.h"

#include "base/have.h"

#if HEADRACE_HAVE_LZ4

#include <fmt/format.h>
#include <lz4.h>
#include <lz4frame.h>

#include <climits>
#include <memory>

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

Result<size_t> unpack_lz4_frame(Bytes packed, MutableBytes out) {
  LZ4F_dctx* made = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0)
    return exhausted("no memory for unpacking lz4");
  const std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> context(
      made, &LZ4F_freeDecompressionContext);
  size_t filled = 0;
  size_t wanted = 1;  // bytes that the frame at hand still wants; 0 between two frames
  while (!packed.empty()) {
    size_t room = out.size() - filled;
    size_t taken = packed.size();
    wanted =
        LZ4F_decompress(context.get(), out.data() + filled, &room, packed.data(), &taken, nullptr);
    if (LZ4F_isError(wanted) != 0)
      return corrupt(fmt::format("data in lz4 do not unpack: {}", LZ4F_getErrorName(wanted)));
    if (room == 0 && taken == 0) return corrupt("data in lz4 unpack to more than they should");
    filled += room;
    packed = packed.subspan(taken);
  }
  if (wanted != 0) return corrupt("data in lz4 are cut short");
  return filled;
}

}  // namespace headrace

#else

namespace headrace {

Result<size_t> unpack_lz4(Bytes, MutableBytes) {
  return unsupported("this build cannot unpack lz4: install liblz4-dev and build again");
}

Result<size_t> unpack_lz4_frame(Bytes packed, MutableBytes out) {
  return unpack_lz4(packed, out);
}

}  // namespace headrace

#endif

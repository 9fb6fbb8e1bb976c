// SPDX-License-Identifier: Apache-2.0
#include "base/zstd.h"

#include "base/have.h"

#if HEADRACE_HAVE_ZSTD

#include <fmt/format.h>
#include <zstd.h>

#include <memory>

namespace headrace {
namespace {

struct Free {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

Result<size_t> unpack_zstd(Bytes packed, MutableBytes out) {
  // 160 KB that every call would make anew.
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (context == nullptr) return exhausted("no memory for unpacking zstd");
  const size_t got =
      ZSTD_decompressDCtx(context.get(), out.data(), out.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) != 0)
    return corrupt(fmt::format("data in zstd do not unpack: {}", ZSTD_getErrorName(got)));
  return got;
}

}  // namespace headrace

#else

namespace headrace {

Result<size_t> unpack_zstd(Bytes, MutableBytes) {
  return unsupported("this build cannot unpack zstd: install libzstd-dev and build again");
}

}  // namespace headrace

#endif

// SPDX-License-Identifier: Apache-2.0
#include "base/zstd.h"

#include <fmt/format.h>

#include "base/have.h"

#if HEADRACE_HAVE_ZSTD

#include <zstd.h>

namespace headrace {
namespace {

struct Free {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class ZstdInflater final : public Inflater {
 public:
  explicit ZstdInflater(ZSTD_DCtx* context) : context_(context) {}

  Status step(Bytes& packed, MutableBytes& out) override {
    while (!out.empty()) {
      ZSTD_inBuffer in{packed.data(), packed.size(), 0};
      ZSTD_outBuffer room{out.data(), out.size(), 0};
      const size_t more = ZSTD_decompressStream(context_.get(), &room, &in);
      if (ZSTD_isError(more) != 0)
        return corrupt(fmt::format("data in zstd do not unpack: {}", ZSTD_getErrorName(more)));
      const bool moved = in.pos > 0 || room.pos > 0;
      packed = packed.subspan(in.pos);
      out = out.subspan(room.pos);
      // Asked again without input at the end of a frame, zstd speaks of the next one.
      if (moved) ended_ = more == 0;
      if (!moved || (packed.empty() && ended_)) break;
    }
    return {};
  }

  bool at_end() const override { return ended_; }

 private:
  const std::unique_ptr<ZSTD_DCtx, Free> context_;
  bool ended_ = false;
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

Result<std::unique_ptr<Inflater>> zstd_inflater() {
  ZSTD_DCtx* const context = ZSTD_createDCtx();
  if (context == nullptr) return exhausted("no memory for unpacking zstd");
  return std::unique_ptr<Inflater>(std::make_unique<ZstdInflater>(context));
}

Status pack_zstd(Bytes in, int level, Buffer& out) {
  struct FreeCompressor {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  if (context == nullptr) return exhausted("no memory for packing zstd");
  out.resize(ZSTD_compressBound(in.size()));
  const size_t made =
      ZSTD_compressCCtx(context.get(), out.data(), out.size(), in.data(), in.size(), level);
  if (ZSTD_isError(made) != 0)
    return internal(fmt::format("zstd does not pack: {}", ZSTD_getErrorName(made)));
  out.resize(made);
  return {};
}

std::optional<uint64_t> zstd_stated_bytes(Bytes packed) {
  const unsigned long long stated = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (stated == ZSTD_CONTENTSIZE_UNKNOWN || stated == ZSTD_CONTENTSIZE_ERROR) return std::nullopt;
  return stated;
}

}  // namespace headrace

#else

namespace headrace {

Result<size_t> unpack_zstd(Bytes, MutableBytes) {
  return unsupported("this build cannot unpack zstd: install libzstd-dev and build again");
}

Result<std::unique_ptr<Inflater>> zstd_inflater() {
  return unsupported("this build cannot unpack zstd: install libzstd-dev and build again");
}

Status pack_zstd(Bytes, int, Buffer&) {
  return unsupported("this build cannot pack zstd: install libzstd-dev and build again");
}

std::optional<uint64_t> zstd_stated_bytes(Bytes) {
  return std::nullopt;
}

}  // namespace headrace

#endif

namespace headrace {

Status zstd_open(Bytes packed, uint64_t expected_bytes, Buffer& out) {
  // A block takes 4 bytes or more and unpacks to 128 KiB or less.
  constexpr uint64_t kBlock = uint64_t{128} << 10;
  if (expected_bytes / kBlock > packed.size() / 4 + 1)
    return corrupt(
        fmt::format("{} bytes of zstd cannot unpack to {}", packed.size(), expected_bytes));
  out.resize(expected_bytes);
  HEADRACE_ASSIGN(const size_t got, unpack_zstd(packed, out.span()));
  if (got != expected_bytes)
    return corrupt(fmt::format("zstd unpacks to {} bytes, not to {}", got, expected_bytes));
  return {};
}

}  // namespace headrace

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
constexpr uint64_t kMostStreamMemory = uint64_t{80} << 20;

Status bad_xz(lzma_ret got) {
  return corrupt(
      fmt::format("data in xz do not unpack (liblzma's code {})", static_cast<int>(got)));
}

class XzInflater final : public Inflater {
 public:
  XzInflater() = default;
  XzInflater(const XzInflater&) = delete;
  XzInflater& operator=(const XzInflater&) = delete;
  ~XzInflater() override { lzma_end(&stream_); }

  Status begin() {
    const lzma_ret got = lzma_stream_decoder(&stream_, kMostStreamMemory, 0);
    return got == LZMA_OK ? Status() : exhausted("no memory for unpacking xz");
  }

  Status step(Bytes& packed, MutableBytes& out) override {
    while (!out.empty()) {
      if (ended_ && !skip_padding(packed)) break;
      if (ended_) HEADRACE_TRY(begin());
      ended_ = false;
      stream_.next_in = reinterpret_cast<const uint8_t*>(packed.data());
      stream_.avail_in = packed.size();
      stream_.next_out = reinterpret_cast<uint8_t*>(out.data());
      stream_.avail_out = out.size();
      const lzma_ret got = lzma_code(&stream_, LZMA_RUN);
      const bool moved = stream_.avail_in != packed.size() || stream_.avail_out != out.size();
      packed = packed.last(stream_.avail_in);
      out = out.last(stream_.avail_out);
      ended_ = got == LZMA_STREAM_END;
      const bool wants_more = packed.empty() && got == LZMA_BUF_ERROR;
      if (!ended_ && got != LZMA_OK && !wants_more) return bad_xz(got);
      if (!moved && !ended_) break;
    }
    return {};
  }

  bool at_end() const override { return ended_; }

 private:
  // Zeros may stand between two streams and behind the last.  Whether another stream follows.
  static bool skip_padding(Bytes& packed) {
    while (!packed.empty() && packed[0] == std::byte{0}) packed = packed.subspan(1);
    return !packed.empty();
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<Inflater>> xz_inflater() {
  auto inflater = std::make_unique<XzInflater>();
  HEADRACE_TRY(inflater->begin());
  return std::unique_ptr<Inflater>(std::move(inflater));
}

Result<size_t> unpack_xz(Bytes packed, MutableBytes out) {
  uint64_t limit = kMostMemory;
  size_t taken = 0;
  size_t filled = 0;
  const lzma_ret got = lzma_stream_buffer_decode(
      &limit, 0, nullptr, reinterpret_cast<const uint8_t*>(packed.data()), &taken, packed.size(),
      reinterpret_cast<uint8_t*>(out.data()), &filled, out.size());
  if (got != LZMA_OK) return bad_xz(got);
  return filled;
}

}  // namespace headrace

#else

namespace headrace {
namespace {

Status no_xz() {
  return unsupported("this build cannot unpack xz: install liblzma-dev and build again");
}

}  // namespace

Result<size_t> unpack_xz(Bytes, MutableBytes) {
  return no_xz();
}

Result<std::unique_ptr<Inflater>> xz_inflater() {
  return no_xz();
}

}  // namespace headrace

#endif

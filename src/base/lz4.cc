// SPDX-License-Identifier: Apache-2.0
#include "base/lz4.h"

#include "base/have.h"

#if HEADRACE_HAVE_LZ4

#include <fmt/format.h>
#include <lz4.h>
#include <lz4frame.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <optional>

namespace headrace {
namespace {

constexpr size_t kOfRuns = 64;  // what became so many times smaller is mostly runs

// A block that is mostly runs: planes of bytes that are all the same, masks.  liblz4 writes a run
// in eights of bytes, this in the largest pieces there are: four times faster on them.
class Runs {
 public:
  Runs(Bytes packed, MutableBytes out) : packed_(packed), out_(out) {}

  // How much of `out` was filled; nothing where the bytes make no sense.
  std::optional<size_t> unpack() {
    while (at_ < packed_.size()) {
      const auto token = static_cast<size_t>(packed_[at_++]);
      size_t literals = token >> 4;
      if (!lengthen(literals) || literals > packed_.size() - at_ || literals > room())
        return std::nullopt;
      if (literals > 0) std::memcpy(out_.data() + filled_, packed_.data() + at_, literals);
      at_ += literals;
      filled_ += literals;
      if (at_ == packed_.size()) return filled_;
      if (packed_.size() - at_ < 2) return std::nullopt;
      const size_t back = load_le<uint16_t>(packed_.subspan(at_));
      at_ += 2;
      size_t length = token & 15;
      if (!lengthen(length) || back == 0 || back > filled_ || length > out_.size() ||
          length + 4 > room())
        return std::nullopt;
      repeat(back, length + 4);
    }
    return std::nullopt;
  }

 private:
  size_t room() const { return out_.size() - filled_; }

  // 15 says that bytes follow to be added, the last of them below 255.
  bool lengthen(size_t& length) {
    if (length != 15) return true;
    for (size_t more = 255; more == 255;) {
      if (at_ == packed_.size()) return false;
      more = static_cast<size_t>(packed_[at_++]);
      length += more;
    }
    return true;
  }

  // What was written once is there twice, then four times, …
  void repeat(size_t back, size_t length) {
    std::byte* to = out_.data() + filled_;
    filled_ += length;
    if (back == 1) {
      std::memset(to, static_cast<int>(to[-1]), length);
      return;
    }
    const std::byte* from = to - back;
    for (size_t span = back; length > 0; span *= 2) {
      const size_t n = std::min(span, length);
      std::memcpy(to, from, n);
      to += n;
      length -= n;
    }
  }

  Bytes packed_;
  MutableBytes out_;
  size_t at_ = 0;
  size_t filled_ = 0;
};

}  // namespace

Result<size_t> unpack_lz4(Bytes packed, MutableBytes out) {
  if (packed.size() > INT_MAX || out.size() > INT_MAX)
    return corrupt("a block in lz4 has less than 2 GiB");
  if (!packed.empty() && packed.size() < out.size() / kOfRuns) {
    const std::optional<size_t> filled = Runs(packed, out).unpack();
    return filled ? Result<size_t>(*filled) : corrupt("data in lz4 do not unpack");
  }
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

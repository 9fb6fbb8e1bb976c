// SPDX-License-Identifier: Apache-2.0
#include "base/inflate.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "base/have.h"
#include "base/zlib.h"

#if HEADRACE_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

namespace headrace {

#if HEADRACE_HAVE_LIBDEFLATE

namespace {

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* p) const { libdeflate_free_decompressor(p); }
};

// One for each thread that ever inflates: 11 KB, and it may not be shared.
libdeflate_decompressor* decompressor() {
  thread_local const std::unique_ptr<libdeflate_decompressor, FreeDecompressor> one(
      libdeflate_alloc_decompressor());
  return one.get();
}

}  // namespace

uint32_t crc32(Bytes data, uint32_t seed) {
  return data.empty() ? seed : libdeflate_crc32(seed, data.data(), data.size());
}

Status inflate_raw(Bytes in, uint64_t expected, Buffer& out, uint64_t* used) {
  if (expected / kMaxInflation > in.size())
    return corrupt(fmt::format("{} deflated bytes cannot become {}", in.size(), expected));
  out.resize(expected);
  return inflate_raw(in, out.span(), used);
}

Status inflate_raw(Bytes in, MutableBytes out, uint64_t* used) {
  const uint64_t expected = out.size();
  if (decompressor() == nullptr) return exhausted("no memory for a decompressor");
  std::byte nothing{};  // libdeflate wants an address even for no bytes
  size_t taken = 0;
  size_t made = 0;
  const libdeflate_result result = libdeflate_deflate_decompress_ex(
      decompressor(), in.data(), in.size(), expected == 0 ? &nothing : out.data(), expected, &taken,
      &made);
  if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
    return corrupt(fmt::format("deflated bytes that give more than the {} they should", expected));
  if (result != LIBDEFLATE_SUCCESS) return corrupt("damaged deflated bytes");
  if (made != expected)
    return corrupt(fmt::format("deflated bytes that give {} instead of {}", made, expected));
  if (used != nullptr) *used = taken;
  return {};
}

Status deflate_whole(Bytes in, DeflateWrap wrap, int level, Buffer& out) {
  struct Free {
    void operator()(libdeflate_compressor* p) const { libdeflate_free_compressor(p); }
  };
  // Some hundred KB, kept for the next call of this thread at this level.
  thread_local int made_for = -1;
  thread_local std::unique_ptr<libdeflate_compressor, Free> one;
  if (made_for != level) {
    one.reset(libdeflate_alloc_compressor(level));
    made_for = level;
  }
  if (one == nullptr) return exhausted("no memory for a compressor, or no such level");
  const bool zlib = wrap == DeflateWrap::kZlib;
  out.resize(zlib ? libdeflate_zlib_compress_bound(one.get(), in.size())
                  : libdeflate_gzip_compress_bound(one.get(), in.size()));
  const size_t made =
      zlib ? libdeflate_zlib_compress(one.get(), in.data(), in.size(), out.data(), out.size())
           : libdeflate_gzip_compress(one.get(), in.data(), in.size(), out.data(), out.size());
  if (made == 0) return internal("deflate gave more than its bound");
  out.resize(made);
  return {};
}

namespace {

// False where zlib is to have a second look: several members, or damage that it describes better.
bool inflate_quickly(Bytes in, MutableBytes out) {
  if (decompressor() == nullptr || in.size() < 2) return false;
  std::byte nothing{};
  std::byte* to = out.empty() ? &nothing : out.data();
  const bool gzip = is_gzip(in);
  size_t taken = 0;
  size_t made = 0;
  const libdeflate_result result =
      gzip ? libdeflate_gzip_decompress_ex(decompressor(), in.data(), in.size(), to, out.size(),
                                           &taken, &made)
           : libdeflate_zlib_decompress_ex(decompressor(), in.data(), in.size(), to, out.size(),
                                           &taken, &made);
  return result == LIBDEFLATE_SUCCESS && made == out.size() && (!gzip || taken == in.size());
}

}  // namespace

#else

namespace {

bool inflate_quickly(Bytes, MutableBytes) {
  return false;
}

constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t v = i;
    for (int bit = 0; bit < 8; ++bit) v = (v >> 1) ^ ((v & 1u) != 0 ? 0xedb88320u : 0u);
    table[i] = v;
  }
  return table;
}();

}  // namespace

uint32_t crc32(Bytes data, uint32_t seed) {
  uint32_t v = ~seed;
  for (const std::byte b : data) v = (v >> 8) ^ kTable[(v ^ static_cast<uint32_t>(b)) & 0xffu];
  return ~v;
}

Status deflate_whole(Bytes, DeflateWrap, int, Buffer&) {
  return unsupported(
      "this build has no libdeflate; on Debian and Ubuntu: apt-get install libdeflate-dev, then "
      "build headrace again");
}

Status inflate_raw(Bytes in, uint64_t, Buffer&, uint64_t*) {
  return inflate_raw(in, {});
}

Status inflate_raw(Bytes, MutableBytes, uint64_t*) {
  return unsupported(
      "deflated bytes, and this build has no libdeflate; on Debian and Ubuntu: apt-get install "
      "libdeflate-dev, then build headrace again");
}

#endif

Status inflate_whole(Bytes in, MutableBytes out) {
  if (inflate_quickly(in, out)) return {};
  HEADRACE_ASSIGN(const size_t made, unpack_zlib(in, out));
  if (made != out.size())
    return corrupt(fmt::format("deflated bytes that give {} instead of {}", made, out.size()));
  return {};
}

}  // namespace headrace

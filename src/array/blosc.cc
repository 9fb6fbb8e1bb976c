// SPDX-License-Identifier: Apache-2.0
#include "array/blosc.h"

#include <fmt/format.h>

#include <climits>

#include "array/blosc_frame.h"
#include "base/have.h"

#if HEADRACE_HAVE_BLOSC
#include <blosc.h>
#endif

namespace headrace {
namespace {

Status wrong_size(uint64_t size, uint64_t expected) {
  return corrupt(
      fmt::format("a Blosc frame that opens to {} bytes, {} are expected", size, expected));
}

#if HEADRACE_HAVE_BLOSC
// What the frame says it opens to; a frame that the library can open.
Result<size_t> stated_bytes(Bytes frame) {
  size_t size = 0;
  if (frame.size() < 16 || blosc_cbuffer_validate(frame.data(), frame.size(), &size) < 0)
    return corrupt("no Blosc frame, or one that is cut short");
  return size;
}

Result<size_t> unpack_by_library(Bytes frame, MutableBytes out) {
  HEADRACE_ASSIGN(const size_t size, stated_bytes(frame));
  if (size > out.size()) return corrupt("a Blosc frame that opens to more than its chunk holds");
  if (size == 0) return size_t{0};
  const int got = blosc_decompress_ctx(frame.data(), out.data(), out.size(), 1);
  if (got < 0) return corrupt("a Blosc frame that does not open");
  return static_cast<size_t>(got);
}

Result<bool> unpack_part_by_library(Bytes frame, uint64_t expected, uint64_t begin,
                                    MutableBytes out) {
  HEADRACE_ASSIGN(const size_t size, stated_bytes(frame));
  if (size != expected) return wrong_size(size, expected);
  size_t item = 0;
  int flags = 0;
  blosc_cbuffer_metainfo(frame.data(), &item, &flags);
  if (item == 0 || begin % item != 0 || out.size() % item != 0) return false;
  const size_t first = begin / item;
  const size_t count = out.size() / item;
  if (first + count > INT_MAX) return false;
  const int got =
      blosc_getitem(frame.data(), static_cast<int>(first), static_cast<int>(count), out.data());
  if (got < 0 || static_cast<size_t>(got) != out.size())
    return corrupt("a Blosc frame that does not open");
  return true;
}
#else
constexpr const char* kNoLibrary =
    "this build has no Blosc: apt-get install libblosc-dev and build again";

Result<size_t> unpack_by_library(Bytes, MutableBytes) {
  return unsupported(kNoLibrary);
}
Result<bool> unpack_part_by_library(Bytes, uint64_t, uint64_t, MutableBytes) {
  return false;
}
#endif

}  // namespace

Result<size_t> unpack_blosc(Bytes frame, MutableBytes out, NextUse next_use) {
  const std::optional<BloscFrame> own = BloscFrame::parse(frame);
  if (!own) return unpack_by_library(frame, out);
  if (own->bytes() > out.size())
    return corrupt("a Blosc frame that opens to more than its chunk holds");
  HEADRACE_TRY(own->open(0, out.first(own->bytes()), next_use));
  return static_cast<size_t>(own->bytes());
}

Result<bool> unpack_blosc_part(Bytes frame, uint64_t expected, uint64_t begin, MutableBytes out,
                               NextUse next_use) {
  const std::optional<BloscFrame> own = BloscFrame::parse(frame);
  if (!own) return unpack_part_by_library(frame, expected, begin, out);
  if (own->bytes() != expected) return wrong_size(own->bytes(), expected);
  if (!own->holds(begin, out.size())) return false;
  HEADRACE_TRY(own->open(begin, out, next_use));
  return true;
}

#if HEADRACE_HAVE_BLOSC
Status pack_blosc(Bytes in, const BloscOptions& options, Buffer& out) {
  if (in.size() > BLOSC_MAX_BUFFERSIZE)
    return invalid("Blosc holds less than 2 GiB in a chunk: make the chunks smaller");
  out.resize(in.size() + BLOSC_MAX_OVERHEAD);
  const int made = blosc_compress_ctx(options.level, options.shuffle ? BLOSC_SHUFFLE : 0,
                                      options.item, in.size(), in.data(), out.data(), out.size(),
                                      options.compressor.c_str(), 0, 1);
  if (made <= 0)
    return unsupported("Blosc does not pack with '" + options.compressor +
                       "': the library may have been built without it");
  out.resize(static_cast<size_t>(made));
  return {};
}
#else
Status pack_blosc(Bytes, const BloscOptions&, Buffer&) {
  return unsupported(kNoLibrary);
}
#endif

}  // namespace headrace

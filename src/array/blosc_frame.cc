// SPDX-License-Identifier: Apache-2.0
#include "array/blosc_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/buffer.h"
#include "base/have.h"
#include "base/inflate.h"
#include "base/lz4.h"
#include "base/zstd.h"

namespace headrace {
namespace {

// Version, version of the codec, flags, bytes of an element; u32: bytes opened, bytes of a block,
// bytes of the frame.  Then a u32 for each block: where it begins.
constexpr size_t kHead = 16;
constexpr uint8_t kLastVersion = 2;

constexpr uint8_t kShuffled = 1;
constexpr uint8_t kCopied = 2;
constexpr uint8_t kUnknown = 4 | 8;  // shuffled by bits; not Blosc 1's
constexpr uint8_t kNotSplit = 16;

constexpr uint64_t kLeastPlane = 128;  // shorter ones are not split

uint64_t blocks_in(uint64_t bytes, uint64_t block) {
  return block == 0 ? 0 : bytes / block + (bytes % block != 0 ? 1 : 0);
}

bool can_unpack(uint8_t codec) {
  return (codec == 1 && HEADRACE_HAVE_LZ4) || codec == 3 || (codec == 4 && HEADRACE_HAVE_ZSTD);
}

// A block before its bytes are put together; the thread's own and kept.
MutableBytes scratch(size_t size) {
  thread_local Buffer buffer;
  buffer.resize(size);
  return buffer.span();
}

// A stream says its length before it begins.
Result<Bytes> next_stream(Bytes& rest) {
  if (rest.size() < 4) return corrupt("it is cut short");
  const auto size = load_le<uint32_t>(rest);
  if (size > rest.size() - 4) return corrupt("it is cut short");
  const Bytes stream = rest.subspan(4, size);
  rest = rest.subspan(4 + size);
  return stream;
}

// Bytes from `begin` on of the streams, as if they lay one after the other.
void copy_part(std::span<const Bytes> streams, uint64_t begin, MutableBytes out) {
  for (const Bytes& stream : streams) {
    if (begin >= stream.size()) {
      begin -= stream.size();
      continue;
    }
    const size_t size = std::min<size_t>(out.size(), stream.size() - begin);
    if (stream.data() + begin != out.data())
      std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(begin), size, out.begin());
    out = out.subspan(size);
    begin = 0;
  }
}

}  // namespace

std::optional<BloscFrame> BloscFrame::parse(Bytes frame) {
  if (frame.size() < kHead) return std::nullopt;
  const auto at = [&](size_t i) { return static_cast<uint8_t>(frame[i]); };
  const uint8_t flags = at(2);
  const auto codec = static_cast<uint8_t>(flags >> 5);
  BloscFrame out;
  out.frame_ = frame;
  out.item_ = at(3);
  out.bytes_ = load_le<uint32_t>(frame.subspan(4));
  out.block_ = load_le<uint32_t>(frame.subspan(8));
  out.is_copied_ = (flags & kCopied) != 0;
  out.is_shuffled_ = (flags & kShuffled) != 0 && out.item_ > 1;
  out.is_split_ = (flags & kNotSplit) == 0 && out.item_ <= kMostPlanes && out.item_ > 0 &&
                  out.block_ / std::max<size_t>(1, out.item_) >= kLeastPlane;
  const bool is_sound = at(0) > 0 && at(0) <= kLastVersion && (flags & kUnknown) == 0 &&
                        load_le<uint32_t>(frame.subspan(12)) == frame.size() && out.item_ > 0 &&
                        out.bytes_ > 0 && out.bytes_ % out.item_ == 0 && out.block_ > 0 &&
                        out.block_ <= out.bytes_ && out.block_ % out.item_ == 0;
  if (!is_sound) return std::nullopt;
  if (out.is_copied_) return frame.size() - kHead == out.bytes_ ? std::optional(out) : std::nullopt;
  if (!can_unpack(codec) || blocks_in(out.bytes_, out.block_) > (frame.size() - kHead) / 4)
    return std::nullopt;
  out.codec_ = static_cast<Codec>(codec);
  return out;
}

bool BloscFrame::holds(uint64_t begin, uint64_t size) const {
  return begin <= bytes_ && size <= bytes_ - begin && begin % item_ == 0 && size % item_ == 0;
}

Status BloscFrame::open(uint64_t begin, MutableBytes out, NextUse next_use) const {
  if (!holds(begin, out.size())) return internal("a part that a Blosc frame does not hold");
  if (is_copied_) {
    const Bytes from = frame_.subspan(kHead + begin, out.size());
    std::copy(from.begin(), from.end(), out.begin());
    return {};
  }
  while (!out.empty()) {
    const uint64_t block = begin / block_;
    const uint64_t inside = begin % block_;
    const uint64_t size = std::min<uint64_t>(out.size(), block_ - inside);
    if (Status s = open_block(block, inside, out.first(size), next_use); !s.ok())
      return s.with(fmt::format("block {} of a Blosc frame", block));
    begin += size;
    out = out.subspan(size);
  }
  return {};
}

Status BloscFrame::unpack(Bytes stream, MutableBytes out) const {
  if (codec_ == Codec::kZlib) return inflate_whole(stream, out);
  const Result<size_t> got =
      codec_ == Codec::kLz4 ? unpack_lz4(stream, out) : unpack_zstd(stream, out);
  if (!got.ok()) return got.status();
  return got.value() == out.size() ? Status() : corrupt("it opens to less than it holds");
}

// The streams of a block one after the other in `room`; those that did not become smaller stay
// where they lie.
Status BloscFrame::unpack_block(Bytes rest, MutableBytes room, std::span<Bytes> streams) const {
  const size_t each = room.size() / streams.size();
  for (size_t s = 0; s < streams.size(); ++s) {
    HEADRACE_ASSIGN(streams[s], next_stream(rest));
    if (streams[s].size() == each) continue;
    const MutableBytes to = room.subspan(s * each, each);
    HEADRACE_TRY(unpack(streams[s], to));
    streams[s] = to;
  }
  return {};
}

Status BloscFrame::open_block(uint64_t block, uint64_t begin, MutableBytes out,
                              NextUse next_use) const {
  const uint64_t size = std::min(block_, bytes_ - block * block_);
  const auto starts = load_le<uint32_t>(frame_.subspan(kHead + 4 * block));
  if (starts > frame_.size()) return corrupt("it begins behind the end");
  // Bytes that are in their order go straight to where they belong, if all are wanted.
  const MutableBytes room = !is_shuffled_ && out.size() == size ? out : scratch(size);
  std::array<Bytes, kMostPlanes> found;
  const auto streams = std::span(found).first(is_split_ && size == block_ ? item_ : 1);
  HEADRACE_TRY(unpack_block(frame_.subspan(starts), room, streams));
  if (!is_shuffled_) {
    copy_part(streams, begin, out);
  } else if (item_ > kMostPlanes) {
    HEADRACE_TRY(put_records(streams[0], begin, out));
  } else {
    std::array<const std::byte*, kMostPlanes> planes{};
    const size_t plane = size / item_;
    for (size_t b = 0; b < item_; ++b)
      planes[b] =
          (streams.size() > 1 ? streams[b] : streams[0].subspan(b * plane)).data() + begin / item_;
    merge_planes(std::span(planes).first(item_), out, next_use);
  }
  return {};
}

// Elements of more bytes than planes are put together from.
Status BloscFrame::put_records(Bytes shuffled, uint64_t begin, MutableBytes out) const {
  if (out.size() == shuffled.size()) return undo_shuffle(shuffled, out, item_), Status();
  Buffer whole(shuffled.size());
  undo_shuffle(shuffled, whole.span(), item_);
  const Bytes part = whole.bytes().subspan(begin, out.size());
  std::copy(part.begin(), part.end(), out.begin());
  return {};
}

}  // namespace headrace

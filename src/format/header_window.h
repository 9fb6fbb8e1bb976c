// SPDX-License-Identifier: Apache-2.0
//
// HeaderWindow: how a file is read when only the headers between its data are wanted.
#pragma once

#include <algorithm>
#include <optional>

#include "base/buffer.h"
#include "format/format.h"
#include "storage/block_stream.h"

namespace headrace {

// Reads headers through a window that grows while members are small, and shrinks to
// single headers when it has to jump over data.  One thread at a time.
class HeaderWindow {
 public:
  enum Use : uint8_t {
    kAnyOrder,
    kInOrder,  // each header says where the next one is: of a server, all is streamed
  };

  explicit HeaderWindow(const ShardInput& shard, Use use = kAnyOrder) : shard_(shard) {
    if (is_remote_ && use == kInOrder)
      stream_.emplace(shard.store, shard.info.path, shard.info.bytes,
                      BlockStreamOptions{.ahead = shard.blocks_ahead, .kept = shard.kept});
  }

  // Precondition: offset + length is within the file.  Valid until the next call.
  Status bytes(uint64_t offset, uint64_t length, Bytes& out) {
    if (stream_) return stream_->bytes(offset, length, out);
    if (offset < begin_ || offset + length > begin_ + buffer_.size())
      HEADRACE_TRY(move(offset, length));
    out = buffer_.bytes().subspan(offset - begin_, length);
    return {};
  }

 private:
  static constexpr uint64_t kSmallRead = 2048;  // header, a label, and the next header
  static constexpr uint64_t kLargeRead = uint64_t{256} << 10;
  // Where one large read is cheaper than many (remote stores).
  static constexpr uint64_t kRunRead = uint64_t{4} << 20;
  // Warm, a small read costs as much as copying some 4 KiB.
  static constexpr uint64_t kWorthSkipping = uint64_t{8} << 10;

  Status move(uint64_t offset, uint64_t length) {
    const uint64_t end = begin_ + buffer_.size();
    const bool jumped = offset > end + kWorthSkipping;
    size_ = jumped ? kSmallRead : std::min(size_ * 2, kLargeRead);
    const uint64_t want = is_remote_ ? kRunRead : size_;
    begin_ = offset;
    return shard_.store.read_at(shard_.info.path, offset,
                                std::min(std::max(want, length), shard_.info.bytes - offset),
                                buffer_);
  }

  const ShardInput& shard_;
  const bool is_remote_ = shard_.store.cost(shard_.info.path).is_remote();
  std::optional<BlockStream> stream_;
  Buffer buffer_;
  uint64_t begin_ = 0;
  uint64_t size_ = kSmallRead;
};

}  // namespace headrace

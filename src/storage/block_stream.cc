// SPDX-License-Identifier: Apache-2.0
#include "storage/block_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace {
namespace {

constexpr uint64_t kSmallBytes = uint64_t{64} << 10;
constexpr uint64_t kJump = 2 * BlockStream::kBlockBytes;  // skipping less costs more than it saves

}  // namespace

Status BlockStream::bytes(uint64_t offset, uint64_t length, Bytes& out) {
  move_to(offset);
  read_ahead(offset + length);
  HEADRACE_TRY(wait(*blocks_.front()));
  const Block& first = *blocks_.front();
  if (offset + length <= first.end()) {
    out = first.memory->bytes().subspan(offset - first.offset, length);
    return {};
  }
  joined_.resize(length);
  for (const auto& block : blocks_) {
    if (block->offset >= offset + length) break;
    HEADRACE_TRY(wait(*block));
    const uint64_t begin = std::max(offset, block->offset);
    const uint64_t end = std::min(offset + length, block->end());
    std::memcpy(joined_.data() + (begin - offset), block->memory->data() + (begin - block->offset),
                end - begin);
  }
  out = joined_.bytes();
  return {};
}

// Lets go of what lies before; begins anew where the offset is neither in a block nor near.
void BlockStream::move_to(uint64_t offset) {
  while (!blocks_.empty() && blocks_.front()->end() <= offset) drop_first();
  if (!blocks_.empty() && blocks_.front()->offset <= offset) return;
  const bool is_jump = offset < end_ || offset > end_ + kJump;
  give_up();
  end_ = offset;
  small_ = is_jump;
  if (is_jump) depth_ = 0;
}

void BlockStream::drop_first() {
  const std::shared_ptr<Block> block = std::move(blocks_.front());
  blocks_.pop_front();
  depth_ = std::min(options_.ahead, std::max(1u, depth_ * 2));
  small_ = false;
  MutexLock lock(block->mu);
  if (options_.kept != nullptr && block->done && block->status.ok())
    options_.kept->keep(path_, block->offset, block->version, block->memory);
}

void BlockStream::read_ahead(uint64_t until) {
  if (blocks_.empty()) start(small_ ? std::max(kSmallBytes, until - end_) : kBlockBytes);
  while (end_ < until || (blocks_.size() <= depth_ && end_ < size_)) start(kBlockBytes);
}

void BlockStream::start(uint64_t length) {
  auto block = std::make_shared<Block>();
  block->offset = end_;
  block->length = std::min(length, size_ - end_);
  end_ = block->end();
  blocks_.push_back(block);
  ReadRequest request{.path = path_,
                      .offset = block->offset,
                      .length = block->length,
                      .priority = block->offset / kBlockBytes,
                      .group = group_,
                      .done = [block](ReadRequest&& done) {
                        MutexLock lock(block->mu);
                        *block->memory = std::move(done.into);
                        block->status = std::move(done.status);
                        block->version = std::move(done.version);
                        block->done = true;
                        block->is_done.notify_all();
                      }};
  store_.read({&request, 1});
}

Status BlockStream::wait(Block& block) const {
  MutexLock lock(block.mu);
  while (!block.done) block.is_done.wait(block.mu);
  return block.status;
}

void BlockStream::give_up() {
  while (!blocks_.empty()) drop_first();
  group_->cancel();
  store_.cancel(*group_);
  group_ = std::make_shared<ReadGroup>();
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "storage/kept_blocks.h"

#include <algorithm>
#include <cstring>

#include "base/guard.h"

namespace headrace {

void KeptBlocks::keep(const std::string& path, uint64_t offset, const std::string& version,
                      std::shared_ptr<const Buffer> memory) const {
  MutexLock lock(mu_);
  const uint64_t bytes = memory->size();
  if (bytes_ + bytes > most_bytes_) return;
  if (!blocks_.try_emplace({path, offset}, Kept{std::move(memory), version}).second) return;
  bytes_ += bytes;
  kept_ns_ = steady_ns();
}

uint64_t KeptBlocks::held_bytes() const {
  MutexLock lock(mu_);
  return bytes_;
}

// Framing, and what a batch at the end leaves over, is not asked for.
void KeptBlocks::use(Blocks::iterator block, uint64_t from, uint64_t to) const {
  Kept& kept = block->second;
  kept.used_bytes += to - from;
  const uint64_t all = kept.memory->size();
  if (kept.used_bytes < all - all / 8) return;
  const uint64_t begin = block->first.second;
  const uint64_t end = begin + all;
  // What one large read left at both ends is of its neighbours.
  const bool at_once = to - from >= all - all / 8;
  const Kept gone = std::move(kept);
  const std::string path = block->first.first;
  bytes_ -= all;
  blocks_.erase(block);
  if (!at_once) return;
  for (const auto& [first, last] : {std::pair(begin, from), std::pair(to, end)}) {
    if (first == last) continue;
    auto edge = std::make_shared<Buffer>(last - first);
    std::memcpy(edge->data(), gone.memory->data() + (first - begin), last - first);
    bytes_ += last - first;
    blocks_.insert_or_assign({path, first}, Kept{std::move(edge), gone.version});
  }
}

// The blocks that hold all of the range, from the one on that begins at `first`.
bool KeptBlocks::find(const ReadRequest& request, std::vector<std::shared_ptr<const Buffer>>& found,
                      uint64_t& first, std::string& version) const {
  MutexLock lock(mu_);
  if (blocks_.empty() || request.length == kWholeFile || request.length == 0) return false;
  if (steady_ns() > kept_ns_ + kLongest) {
    blocks_.clear();
    bytes_ = 0;
    return false;
  }
  auto begin = blocks_.upper_bound({request.path, request.offset});
  if (begin == blocks_.begin()) return false;
  --begin;
  uint64_t at = request.offset;
  const uint64_t end = request.offset + request.length;
  auto last = begin;
  for (; at < end; ++last) {
    if (last == blocks_.end() || last->first.first != request.path || last->first.second > at)
      return false;
    const uint64_t block_end = last->first.second + last->second.memory->size();
    if (block_end <= at) return false;
    if (last->second.version != begin->second.version) return false;
    if (!request.version.empty() && last->second.version != request.version) return false;
    at = block_end;
  }
  first = begin->first.second;
  version = begin->second.version;
  std::vector<Blocks::iterator> used;
  for (auto block = begin; block != last; ++block) used.push_back(block);
  for (const auto& block : used) {
    found.push_back(block->second.memory);
    const uint64_t from = std::max(request.offset, block->first.second);
    const uint64_t to = std::min(end, block->first.second + block->second.memory->size());
    use(block, from, to);
  }
  return true;
}

bool KeptBlocks::serve(ReadRequest& request) const {
  if (request.is_cancelled()) return false;
  std::vector<std::shared_ptr<const Buffer>> found;
  uint64_t at = 0;
  std::string version;
  if (!find(request, found, at, version)) return false;
  mark_sent(request);
  const Status status = guard([&]() -> Status {
    request.into.resize(request.length);
    return {};
  });
  const uint64_t end = request.offset + request.length;
  for (const auto& block : found) {
    if (!status.ok()) break;
    const uint64_t from = std::max(request.offset, at);
    const uint64_t to = std::min(end, at + block->size());
    std::memcpy(request.into.data() + (from - request.offset), block->data() + (from - at),
                to - from);
    at += block->size();
  }
  request.version = std::move(version);
  complete(std::move(request), status);
  return true;
}

void KeptBlocks::read(std::span<ReadRequest> requests) const {
  std::vector<ReadRequest> rest;
  for (ReadRequest& request : requests)
    if (!serve(request)) rest.push_back(std::move(request));
  if (!rest.empty()) inner().read(rest);
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "array/shared_chunks.h"

#include <algorithm>
#include <functional>

namespace headrace {
namespace {

constexpr size_t kKeepBytes = size_t{64} << 20;  // from sample to sample

}  // namespace

void SharedChunks::begin(std::span<const AssembleOutput> outputs) {
  chunks_.clear();
  named_.clear();
  for (const AssembleOutput& output : outputs)
    for (const PieceBytes& piece : output.pieces)
      if (piece.unopened != nullptr) named_.push_back(piece.unopened);
  std::sort(named_.begin(), named_.end(), std::less<>());
  for (size_t i = 1; i < named_.size(); ++i) {
    if (named_[i] != named_[i - 1]) continue;
    if (!chunks_.empty() && chunks_.back().unit == named_[i]) continue;
    chunks_.push_back({.unit = named_[i], .buffer = chunks_.size()});
  }
  if (buffers_.size() < chunks_.size()) buffers_.resize(chunks_.size());
}

SharedChunks::Chunk* SharedChunks::find(const Unit& unit) {
  const auto before = [](const Chunk& chunk, const Unit* u) {
    return std::less<>()(chunk.unit, u);
  };
  const auto it = std::lower_bound(chunks_.begin(), chunks_.end(), &unit, before);
  return it == chunks_.end() || it->unit != &unit ? nullptr : &*it;
}

void SharedChunks::want(const Unit& unit, uint64_t first, uint64_t bytes) {
  Chunk* chunk = find(unit);
  if (chunk == nullptr) return;
  chunk->begin = std::min(chunk->begin, first);
  chunk->end = std::max(chunk->end, first + bytes);
}

void SharedChunks::end() {
  chunks_.clear();
  size_t kept = 0;
  for (const Buffer& buffer : buffers_) kept += buffer.capacity();
  if (kept > kKeepBytes) buffers_.clear();
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "engine/read_window.h"

#include <algorithm>

namespace headrace {

void ReadWindow::add(const ChunkPointer& chunk) {
  for (Gather::Want& want : chunk->gather.wants())
    wants_.emplace(place_of(want), Waiting{&want, chunk});
}

ReadWindow::Wants::iterator ReadWindow::find(const Gather::Want& want) {
  auto [at, end] = wants_.equal_range(place_of(want));
  while (at != end && at->second.want != &want) ++at;
  return at == end ? wants_.end() : at;
}

void ReadWindow::remove(Chunk& chunk) {
  for (const Gather::Want& want : chunk.gather.wants())
    if (const auto at = find(want); at != wants_.end()) wants_.erase(at);
}

std::vector<RangePointer> ReadWindow::cover(Chunk& chunk, uint64_t room_bytes) {
  std::vector<RangePointer> ranges;
  for (Gather::Want& want : chunk.gather.wants())
    if (!want.is_covered) ranges.push_back(merge(find(want), room_bytes));
  return ranges;
}

// The range of one want, with its neighbours on both sides.
RangePointer ReadWindow::merge(Wants::iterator at, uint64_t& room_bytes) {
  const Gather::Want& first = *at->second.want;
  const RangePointer range = range_of(first);
  auto begin = at;
  auto end = std::next(at);
  const uint64_t gap = first.policy->gap_bytes;
  const uint64_t most = first.policy->most_bytes;
  uint64_t from = range->offset;
  uint64_t to = range->length == kWholeFile ? kWholeFile : range->offset + range->length;
  const auto is_beside = [&](const Gather::Want& w) {
    return to != kWholeFile && w.source == first.source && w.unit->file == first.unit->file &&
           w.unit->stored_bytes != kWholeFile;
  };
  while (end != wants_.end() && is_beside(*end->second.want)) {
    const Gather::Want& w = *end->second.want;
    const uint64_t grown = std::max(to, w.end());
    if (w.unit->offset > to + gap || grown - from > most || grown - to > room_bytes) break;
    room_bytes -= grown - to;
    to = grown;
    ++end;
  }
  while (begin != wants_.begin() && is_beside(*std::prev(begin)->second.want)) {
    const Gather::Want& w = *std::prev(begin)->second.want;
    const uint64_t added = from - w.unit->offset;
    if (w.end() + gap < from || to - w.unit->offset > most || added > room_bytes) break;
    room_bytes -= added;
    from = w.unit->offset;
    to = std::max(to, w.end());
    --begin;
  }
  if (to != kWholeFile) {
    range->offset = from;
    range->length = to - from;
  }
  for (auto w = begin; w != end; ++w) {
    Chunk& chunk = *w->second.chunk;
    chunk.gather.cover(*w->second.want, range);
    if (!range->waiting.empty() && range->waiting.back().first == w->second.chunk)
      ++range->waiting.back().second;
    else
      range->waiting.emplace_back(w->second.chunk, 1);
  }
  wants_.erase(begin, end);
  return range;
}

}  // namespace headrace

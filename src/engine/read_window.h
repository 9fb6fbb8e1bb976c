// SPDX-License-Identifier: Apache-2.0
//
// ReadWindow: what resolved chunks want of far storage and nobody reads yet, by place.  When the
// first of two neighbours is read, the other is read with it, however far ahead its turn is.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "engine/chunk.h"

namespace headrace {

// One thread at a time.
class ReadWindow {
 public:
  // The wants of the chunk wait here until cover() or remove(); the chunk stays alive until then.
  void add(const ChunkPointer& chunk);
  void remove(Chunk& chunk);
  void clear() { wants_.clear(); }

  // Ranges for all that the chunk wants and no range covers; neighbours of other chunks join, as
  // long as those add at most `room_bytes`.
  std::vector<RangePointer> cover(Chunk& chunk, uint64_t room_bytes);

 private:
  using Place = std::tuple<const Source*, uint32_t, uint64_t>;  // source, file, offset
  struct Waiting {
    Gather::Want* want;
    ChunkPointer chunk;
  };
  using Wants = std::multimap<Place, Waiting>;

  static Place place_of(const Gather::Want& want) {
    return {want.source, want.unit->file, want.unit->offset};
  }
  Wants::iterator find(const Gather::Want& want);
  RangePointer merge(Wants::iterator at, uint64_t& room_bytes);

  Wants wants_;
};

}  // namespace headrace

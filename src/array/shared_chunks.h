// SPDX-License-Identifier: Apache-2.0
//
// The chunks that several boxes of one sample lie in, where chunks are opened by whoever needs them
// (Unit::unshared): each is opened once, as far as the boxes reach, and kept until the sample's
// values are made.
//
//   begin(outputs)  →  if (!empty()) want(…) for each box  →  open(…) for each box
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "index/source.h"

namespace headrace {

// One thread at a time.  Cleared and refilled: keeps some of its memory.
class SharedChunks {
 public:
  // What of a chunk is open.
  struct Part {
    uint64_t begin = 0;  // the first byte, of the opened chunk
    Bytes bytes;
  };

  // Finds the units that more than one piece of the outputs names.
  void begin(std::span<const AssembleOutput> outputs);
  bool empty() const { return chunks_.empty(); }
  // A box of the unit reaches from `first` on over so many bytes.
  void want(const Unit& unit, uint64_t first, uint64_t bytes);
  // Nothing where no other box lies in the unit.  Else what is open of it: `undo(begin, into)` is
  // called the first time.
  template <typename Undo>
  Result<std::optional<Part>> open(const Unit& unit, Undo&& undo) {
    Chunk* chunk = find(unit);
    if (chunk == nullptr) return std::optional<Part>();
    if (!chunk->is_open) {
      buffers_[chunk->buffer].resize(chunk->end - chunk->begin);
      HEADRACE_TRY(undo(chunk->begin, buffers_[chunk->buffer].span()));
      chunk->is_open = true;
    }
    return std::optional(Part{chunk->begin, buffers_[chunk->buffer].bytes()});
  }
  // Forgets the chunks, and gives memory back where it is much.
  void end();

 private:
  struct Chunk {
    const Unit* unit = nullptr;
    uint64_t begin = ~uint64_t{0};
    uint64_t end = 0;
    size_t buffer = 0;
    bool is_open = false;
  };
  Chunk* find(const Unit& unit);

  std::vector<const Unit*> named_;
  std::vector<Chunk> chunks_;  // by the address of the unit
  std::vector<Buffer> buffers_;
};

}  // namespace headrace

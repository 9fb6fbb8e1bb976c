// SPDX-License-Identifier: Apache-2.0
//
// Reader: asks the index what a chunk needs, hands its reads over to the stores, and passes on
// what came back.  It decides nothing about when: that is ReadScheduler's.
//
//   resolve(chunk) … submit(chunk) ─► store.read ─► range_done ─► last one there ─► Decoding
//                                 └─► unit absent: read ─► Decoding decodes it ─► ready
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/chunk.h"
#include "engine/memory.h"
#include "engine/read_ahead.h"
#include "engine/work.h"

namespace headrace {

class Decoding;
struct PartsOfRead;

// Thread-safe.
class Reader {
 public:
  Reader(const EngineWork& work, Memory& memory, EngineCounters& counters, WorkCount& active);
  // `on_room` is called when a unit was read: more may be under way.
  void connect(Decoding* decoding, std::function<void()> on_room) {
    decoding_ = decoding;
    on_room_ = std::move(on_room);
  }

  // Between feeds: the reads of the next one, which begins with this step, are given up together.
  void start(uint64_t first_step);
  const std::shared_ptr<ReadGroup>& group() const { return group_; }
  // Completes all reads of this feed at once.
  void cancel();

  // What the chunk's samples need.  Of far storage the wants stay uncovered: a window merges them.
  void resolve(Chunk& chunk, bool by_runs);

  // The chunk is granted.  `ranges`: what is to be read now, also for other chunks.
  void submit(const ChunkPointer& chunk, std::span<const RangePointer> ranges);
  // Leaves it to the thread that decodes it to read it; false where that is no good.
  bool submit_late(const ChunkPointer& chunk);
  // By the thread that is about to decode.  False: it is not in the page cache.
  bool read_late(Chunk& chunk, std::vector<Buffer>& warm);

  // How far ahead it is worth to read of a source.
  uint64_t read_ahead_bytes(size_t source) const { return read_ahead_[source]->bytes(); }
  void set_read_ahead(uint64_t least_bytes, uint64_t budget_bytes);
  // Whether chunks are left to those who decode them, as far as is known.
  bool reads_late() const {
    return work_.reads_late && read_early_.load(std::memory_order_relaxed) == 0;
  }
  // Whether rows (rows.h) are filled from memory, as far as is known.
  bool fills_rows() const {
    return work_.by_rows() && read_early_.load(std::memory_order_relaxed) == 0;
  }
  // Likewise, of the next step: counts those that are read instead.
  bool take_rows() {
    if (!work_.by_rows() || fills_rows()) return work_.by_rows();
    read_early_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  void note_cold_rows();
  uint32_t number_of(const Source* source) const;
  uint64_t nominal_file() const;  // what a plain file of unknown size holds, about

 private:
  void ask_index(Chunk& chunk);
  void read_ranges(std::span<const RangePointer> ranges, uint64_t step);
  void range_done(ReadRange& range, ReadRequest&& request);
  void read_unit(const UnitPointer& unit, uint32_t source, Chunk& first);
  SharedBuffer take_memory(uint64_t bytes, bool may_be_fresh);
  void give_memory(SharedUnit& unit, bool may_be_fresh, ReadRequest& request);
  void give_pieces(std::span<RunPart> parts, bool may_be_fresh, ReadRequest& request);
  ReadRequest request_of(SharedUnit& unit, const PartsOfRead& read, bool may_be_fresh);
  void unit_read(const UnitPointer& unit, Status status);
  void arrived(const ChunkPointer& chunk, size_t n);
  void note_read(uint32_t source, const ReadRequest& request);
  void note_whole_file(uint64_t bytes);

  const EngineWork& work_;
  Memory& memory_;
  EngineCounters& counters_;
  WorkCount& active_;
  const bool has_idle_processors_;  // beside those that receive and decode
  Decoding* decoding_ = nullptr;
  std::function<void()> on_room_;
  std::vector<std::unique_ptr<ReadAhead>> read_ahead_;  // of each source
  std::shared_ptr<ReadGroup> group_;
  std::atomic<int> read_early_{0};  // so many chunks are not tried late: the last was not there
  std::atomic<uint64_t> whole_file_bytes_{0}, whole_files_{0};
};

}  // namespace headrace

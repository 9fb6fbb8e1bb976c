// SPDX-License-Identifier: Apache-2.0
//
// Gather: from samples to reads and back to values.  It asks the source what some
// samples need, merges neighbouring extents into ranges, and after the ranges were
// read finds each value in them.  Used by the engine for a run of slots, and by the
// map-style data set for one sample.
//
//   add(sample)…  →  resolve()  →  merge(), or the engine merges  →  [store.read]  →  value(i,
//   field)
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "batch/buffer_pool.h"
#include "engine/read_policy.h"
#include "engine/unit_cache.h"
#include "engine/work_count.h"
#include "index/source.h"

namespace headrace {

struct Chunk;

// One read of one file; may serve several units that lie near each other, also of several chunks.
struct ReadRange {
  const Source* source = nullptr;
  uint32_t source_number = 0;  // the engine's
  std::string path;
  uint64_t offset = 0;
  uint64_t length = 0;
  Buffer own;                   // memory of the gather's
  SharedBuffer shared;          // or of a pool: where values may be handed over, or chunks share it
  std::optional<Pin> resident;  // or where it lies already: nothing is read
  uint32_t values = 0;          // units that lie in it
  Status status;
  // The engine's.
  Grant memory, reading;
  WorkCount::Token under_way;
  std::vector<std::pair<std::shared_ptr<Chunk>, uint32_t>> waiting;  // and for how many units

  Buffer& into() { return shared ? *shared : own; }
  Bytes bytes() const {
    return resident ? resident->bytes() : shared ? shared->bytes() : own.bytes();
  }
};

using RangePointer = std::shared_ptr<ReadRange>;

struct GatherOptions {
  bool runs = true;            // whole blocks, where the policy of the source says so
  BufferPool* pool = nullptr;  // memory for ranges that may be handed over; null: none will be
};

// One thread at a time.  Cleared and refilled: keeps its memory.
class Gather {
 private:
  struct Place {
    uint32_t range = 0;  // index into ranges_, or into shared_ when `is_shared`
    bool is_shared = false;
    uint64_t begin = 0;                  // of the unit within the range
    uint64_t length = 0;                 // kWholeFile: all of the range
    uint32_t part = UnitPin::kWholeRun;  // of a shared run
  };

 public:
  // A unit that has to be read for these samples alone.
  struct Want {
    const Source* source = nullptr;
    const Unit* unit = nullptr;
    const ReadPolicy* policy = nullptr;
    uint32_t source_number = 0;
    bool is_covered = false;  // by a range
    Chunk* chunk = nullptr;   // the engine's
    uint64_t end() const { return unit->offset + unit->stored_bytes; }

   private:
    friend class Gather;
    Place* place = nullptr;
  };

  void clear();

  // Adds a sample.  Fails when the index has none of it or cannot be read.
  Status add(const Source& source, const SampleAsk& ask, const ReadPolicy& policy = kNearPolicy,
             uint32_t source_number = 0);

  // After the last add(): which units are to be read.  Those that are decoded as a whole are taken
  // from `units`, where there is one.
  void resolve(const GatherOptions& options, UnitCache* units);
  // In the order of their files.
  std::span<Want> wants() { return wants_; }
  // Makes ranges of all wants, merging neighbours among them.
  void merge(const GatherOptions& options);
  // Both: for whoever reads at once.
  void plan_reads(const GatherOptions& options, UnitCache* units) {
    resolve(options, units);
    merge(options);
  }
  // The range holds what is wanted.
  void cover(Want& want, const RangePointer& range);

  std::span<const RangePointer> ranges() const { return ranges_; }
  size_t ranges_to_read() const;
  // Whole units that these samples need, each once; pinned until clear().
  std::span<const UnitPin> shared_units() const { return shared_; }
  // Memory of a thread's own for ranges that nobody else will have: what it has just used lies in
  // its cache.  Taken back before clear().
  void lend(std::vector<Buffer>& warm);
  void take_back(std::vector<Buffer>& warm);
  // Bytes that are yet to be read; whole files count `nominal` each.
  uint64_t bytes_to_read(uint64_t nominal) const;

  // Whether some of what is read is yet to be decoded, by assemble().
  bool decodes() const { return decodes_; }

  size_t size() const { return requests_.size(); }
  // How many values the sample has of the field.  Of a row: once its unit is decoded, else 1.
  size_t values(size_t i, size_t field) const;
  // Value v of field f of the i-th added sample, until the next call.  The read's failure,
  // where it failed.
  Result<Bytes> value(size_t i, size_t field, size_t v = 0);
  // Assembles the values of fields in memory of the caller's, in one pass; only where the source
  // assembles them.
  struct AssembleInto {
    size_t field;
    ValueRoom* room;
  };
  Status assemble(size_t i, std::span<const AssembleInto> into);
  bool assembles(size_t i, size_t field) const;
  // The buffer whose whole contents value v is, if nobody else needs it: it is handed over, and
  // value() must not be called for it again.  Else null.
  SharedBuffer take(size_t i, size_t field, size_t v = 0);
  // Whether the value lies in memory that the next value() uses again.
  bool is_joined(Bytes value) const { return !value.empty() && value.data() == joined_.data(); }
  const std::string& key(size_t i) const { return requests_[i].request.key; }
  // For error texts: file and offset of the value.
  Status locate(Status status, size_t i, size_t field, size_t v = 0) const;

 private:
  static const ReadPolicy kNearPolicy;
  struct Entry {
    const Source* source = nullptr;
    uint32_t source_number = 0;
    const ReadPolicy* policy = nullptr;
    SampleAsk ask;                 // its fields are the next member's
    std::vector<uint32_t> fields;  // wanted
    Request request;
    std::vector<Place> places;  // of each unit of the request
  };

  Entry& next_entry();
  // All that was read of the unit, or the part of the range that it is.
  Result<Bytes> unit_bytes(const Entry& entry, const Piece& piece) const;
  Result<Bytes> piece_bytes(const Entry& entry, const Piece& piece) const;
  uint32_t share(const Source& source, const Unit& unit, UnitCache& units);
  static uint64_t samples_of_block(const Entry& entry);
  static bool find_run(const Entry& entry, const Unit& unit, Unit& run);
  bool share_run(const Entry& entry, const Unit& unit, const GatherOptions& options,
                 UnitCache& units, Place& place);
  void read_singly(const Entry& entry, const Unit& unit, UnitCache& units);
  SharedBuffer take_part(const Place& place, const Piece& piece) const;
  RangePointer new_range(const Want& want, const GatherOptions& options);

  bool decodes_ = false;
  std::vector<Entry> entries_;  // memory kept over clear()
  std::span<Entry> requests_;   // those in use
  std::vector<Want> wants_;
  std::vector<RangePointer> ranges_;
  std::vector<UnitPin> shared_;
  // What is taken of each, where it is a run, and the last entry that took of it.
  struct Taken {
    TakenOfRun of_run;
    const Entry* last = nullptr;
  };
  std::vector<Taken> taken_;
  std::vector<Buffer> spare_;       // buffers of earlier ranges
  std::vector<std::byte> joined_;   // a value that came in pieces
  std::vector<PieceBytes> pieces_;  // those of the values that are assembled
  std::vector<AssembleOutput> outputs_;
};

// A range of a want's own, without memory yet.
RangePointer range_of(const Gather::Want& want);

}  // namespace headrace

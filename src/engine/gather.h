// SPDX-License-Identifier: Apache-2.0
//
// Gather: from samples to reads and back to values.  It asks the source what some
// samples need, merges neighbouring extents into ranges, and after the ranges were
// read finds each value in them.  Used by the engine's I/O threads for a run of
// slots, and by the map-style data set for one sample.
//
//   add(sample)…  →  plan_reads()  →  [store.read(ranges)]  →  value(i, field)
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "batch/buffer_pool.h"
#include "engine/unit_cache.h"
#include "index/source.h"

namespace headrace {

// One read of one file; may serve several units that lie near each other.
struct ReadRange {
  const Source* source = nullptr;
  std::string path;
  uint64_t offset = 0;
  uint64_t length = 0;
  Buffer own;                // kept for the next range
  SharedBuffer shared;       // or, where values may be handed over, from a pool
  std::optional<Pin> there;  // or where it lies already: nothing is read
  uint32_t values = 0;       // units that lie in it
  Status status;

  Buffer& into() { return shared ? *shared : own; }
  Bytes bytes() const { return there ? there->bytes() : shared ? shared->bytes() : own.bytes(); }
};

struct GatherOptions {
  uint64_t gap_bytes = 16 << 10;  // two extents nearer than this become one read
  uint64_t most_bytes = 8 << 20;  // and no merged read is longer than this
  bool runs = false;              // read the whole block a sample lies in, and share it
  BufferPool* pool = nullptr;     // memory for ranges that may be handed over; null: none will be
  uint64_t nominal = 0;           // a file of unknown size has about so much
};

// One thread at a time.  Cleared and refilled: keeps its memory.
class Gather {
 public:
  void clear();

  // Adds a sample.  Fails when the index has none of it or cannot be read.
  Status add(const Source& source, uint64_t sample, std::span<const uint32_t> fields, Key draws,
             bool want_key);

  // After the last add(): merges what may be merged.  Units that open as a whole are taken
  // from `units` instead, where there is one.
  void plan_reads(const GatherOptions& options, UnitCache* units);

  std::vector<ReadRange>& ranges() { return ranges_; }
  size_t ranges_to_read() const;
  // Whole units that these samples need, each once; pinned until clear().
  const std::vector<std::shared_ptr<SharedUnit>>& shared_units() const { return shared_; }
  // Memory of a thread's own for ranges that nobody else will have: what it has just used lies in
  // its cache.  Taken back before clear().
  void lend(std::vector<Buffer>& warm);
  void take_back(std::vector<Buffer>& warm);
  // Bytes the private ranges will hold; whole files count `nominal` each.
  uint64_t bytes_to_read(uint64_t nominal) const;

  // Whether some of what is read is yet to be opened, by assemble().
  bool opens() const { return opens_; }

  size_t size() const { return requests_.size(); }
  // How many values the sample has of the field.  Of a row: once its unit is open, else 1.
  size_t values(size_t i, size_t field) const;
  // Value v of field f of the i-th added sample, until the next call.  The read's failure,
  // where it failed.
  Result<Bytes> value(size_t i, size_t field, size_t v = 0);
  // Assembles the field's value in memory of the caller's; only where the source assembles it.
  Status assemble(size_t i, size_t field, ValueRoom& into);
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
  struct Place {
    uint32_t range = 0;  // index into ranges_, or into shared_ when `is_shared`
    bool is_shared = false;
    uint64_t begin = 0;   // of the unit within the range
    uint64_t length = 0;  // kWholeFile: all of the range
  };
  struct Entry {
    const Source* source = nullptr;
    uint64_t sample = 0;
    std::vector<uint32_t> fields;  // wanted, and the draws they were asked with: for assemble()
    Key draws = Key(0);
    Request request;
    std::vector<Place> places;  // of each unit of the request
  };

  Entry& next_entry();
  // All that was read of the unit, or the stretch of the range that it is.
  Result<Bytes> opened(const Entry& entry, const Piece& piece) const;
  Result<Bytes> piece_bytes(const Entry& entry, const Piece& piece) const;
  uint32_t share(const Source& source, const Unit& unit, UnitCache& units);
  bool share_run(const Entry& entry, const Unit& unit, UnitCache& units, Place& place);
  void open_range(const Source& source, const Unit& unit, const GatherOptions& options);

  bool opens_ = false;
  std::vector<Entry> entries_;  // memory kept over clear()
  std::span<Entry> requests_;   // those in use
  std::vector<ReadRange> ranges_;
  std::vector<std::shared_ptr<SharedUnit>> shared_;
  std::vector<Buffer> spare_;       // buffers of earlier ranges
  std::vector<std::byte> joined_;   // a value that came in pieces
  std::vector<PieceBytes> pieces_;  // those of the value that is assembled
};

}  // namespace headrace

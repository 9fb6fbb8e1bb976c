// SPDX-License-Identifier: Apache-2.0
//
// Source: a data set as the engine sees it, whatever its format.  It says which
// samples there are and what each one needs; it does no I/O after it was opened.
//
//   needs(ask) ──► Request: units to fetch, pieces of them that are values
//   [the engine fetches units through store()]
//   decode_unit(unit, stored) ──► decoded bytes, for units that open only as a whole
//   assemble(ask, outputs) ──► values that are made of several pieces, all of a sample in one pass
//
// A record format gives one unit per value (a byte extent).  A row group, a
// compressed chunk or a zstd shard is one unit shared by many samples.  A window
// that straddles chunks is several pieces of several units.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/status.h"
#include "index/schema.h"
#include "storage/store.h"

namespace headrace {

// What is fetched and opened once.  Two are the same when file, offset, length and encoding are.
struct Unit {
  uint32_t file = 0;      // of Source::file_path()
  uint32_t encoding = 0;  // 0: the stored bytes are the value; else decode_unit() knows what
  uint64_t offset = 0;
  uint64_t stored_bytes = 0;   // kWholeFile where the index holds no sizes (plain files)
  uint64_t decoded_bytes = 0;  // equal to stored_bytes when encoding is 0
  // Nobody else is likely to want it soon: it is not kept, and assemble() opens what it needs of
  // it.
  bool unshared = false;
  bool operator==(const Unit&) const = default;
};

inline constexpr uint32_t kInlineUnit = ~uint32_t{0};

inline constexpr uint64_t kRow = kWholeFile - 1;

// A part of an opened unit, or of Request::inline_bytes when unit is kInlineUnit.
struct Piece {
  uint32_t unit = 0;  // index into Request::units
  uint64_t begin = 0;
  // kWholeFile: to the end of the unit.  kRow: the unit opens as a RowTable (row_table.h), and
  // `begin` is the number of a row, whose values they are; such a piece stands alone in its field.
  uint64_t length = kWholeFile;
  // The piece goes on with the value of the piece before: a file in several blocks.
  bool continues = false;
};

// One sample that is asked for.
struct SampleAsk {
  uint64_t sample = 0;
  uint64_t epoch = 0;                     // of the source
  std::span<const uint32_t> fields = {};  // indexes into schema()
  // Names the sample's randomness, for requests that depend on it (random patches).
  Key draws = Key(0);
  // Names the randomness of the source's epoch, alike for all samples.
  Key epoch_draws = Key(0);
  bool want_key = false;
};

// What the wanted fields of one sample need.  Cleared and refilled: keeps its memory.
struct Request {
  std::vector<Unit> units;
  std::vector<Piece> pieces;          // grouped by wanted field, in order; a value each, or more
  std::vector<uint32_t> first_piece;  // field f has pieces [first_piece[f], first_piece[f+1])
  std::vector<std::byte> inline_bytes;
  std::string key;  // filled when the key is wanted

  void clear() {
    units.clear();
    pieces.clear();
    first_piece.assign(1, 0);
    inline_bytes.clear();
    key.clear();
  }
};

// A piece of a value that is assembled: its bytes; of a unit that is alone, the stored ones.
struct PieceBytes {
  Bytes bytes;
  const Unit* unopened = nullptr;
};

// Where an assembled value goes.
class ValueRoom {
 public:
  virtual ~ValueRoom() = default;
  // Memory for a value of so many bytes.  Called once.
  virtual Result<MutableBytes> room(size_t bytes) = 0;
  // Whether the value rests there as it was written: nothing on this thread reads it again.
  virtual bool is_last() const { return false; }
};

// In memory that grows as needed and is kept.
class KeptRoom final : public ValueRoom {
 public:
  explicit KeptRoom(std::vector<std::byte>& bytes) : bytes_(bytes) {}
  Result<MutableBytes> room(size_t bytes) override {
    bytes_.resize(bytes);
    return MutableBytes(bytes_);
  }

 private:
  std::vector<std::byte>& bytes_;
};

// One value to assemble: the pieces that needs() named for the field, and where the value goes.
struct AssembleOutput {
  uint32_t field = 0;  // of schema()
  std::span<const PieceBytes> pieces;
  ValueRoom* value = nullptr;
};

// Where a value lies that is stored as it is.
struct RowPlace {
  uint32_t file = 0;  // of Source::file_path()
  uint64_t offset = 0;
};

// Samples per block, in the order of the data: what the plan is made of.
struct Blocks {
  std::vector<uint32_t> samples;
  uint64_t bytes = 0;   // of all samples; nominal where sizes are not known
  bool shared = false;  // a block's samples share units that open as a whole
};

// Immutable once opened, hence thread-safe (parts may be loaded behind a lock).
class Source {
 public:
  virtual ~Source() = default;

  virtual const Schema& schema() const = 0;
  virtual uint64_t size() const = 0;
  virtual const Blocks& blocks() const = 0;
  // Relative names, sizes, counts and the cutting rule; never places or times.
  virtual Hash128 fingerprint() const = 0;

  // Evaluated before any I/O.  A field the sample lacks gets no pieces.
  virtual Status needs(const SampleAsk& ask, Request& out) const = 0;

  // The stored bytes of the block a sample lies in, as one unit with encoding 0: what is read
  // at once where the store prefers runs.  False where the format has no such run.
  virtual bool run_of(uint64_t sample, Unit& run) const {
    (void)sample, (void)run;
    return false;
  }

  // Not 0: every sample has exactly one value of the field, of so many bytes, stored as it is in
  // one piece.  Then row_places() says the same as needs(), for many samples at once.
  virtual uint64_t row_bytes(uint32_t field) const {
    (void)field;
    return 0;
  }
  // Where the values lie, one for each of the samples.
  virtual Status row_places(uint32_t field, std::span<const uint64_t> samples,
                            std::span<RowPlace> out) const {
    (void)field, (void)samples, (void)out;
    return internal("this source has no rows");
  }

  // Opens a unit whose encoding is not 0.
  virtual Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const {
    (void)unit, (void)stored, (void)decoded;
    return internal("this source has no units to open");
  }

  // True where the field's value is made of its pieces by assemble(): windows and patches of
  // arrays. Then it has one value, even where it needs no piece.
  virtual bool assembles(uint32_t field) const {
    (void)field;
    return false;
  }
  // Makes the values of several fields in one pass, from the pieces that needs() named for the same
  // ask: all of its fields or some of them, each once.  What two of them need is opened once; so
  // pieces of one unit name it by one address.
  virtual Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const {
    (void)ask, (void)outputs;
    return internal("this source has no values to assemble");
  }

  virtual const Store& store() const = 0;
  virtual std::string file_path(uint32_t file) const = 0;  // as store() opens it
  // For error texts; "" where there is none.
  virtual std::string key(uint64_t sample) const = 0;
  // Those of samples [begin, end), added to `out`: for whoever looks at all of them.
  virtual Status keys(uint64_t begin, uint64_t end, std::vector<std::string>& out) const {
    Request request;
    for (uint64_t s = begin; s < end; ++s) {
      if (Status status = needs({.sample = s, .want_key = true}, request); !status.ok())
        return status;
      out.push_back(request.key);
    }
    return {};
  }
};

}  // namespace headrace

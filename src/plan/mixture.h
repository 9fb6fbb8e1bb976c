// SPDX-License-Identifier: Apache-2.0
//
// Mixture: which source each draw comes from, with proportions that are exact.
//
// Weights are integers that sum to 2^32; F_k are their running sums.  Of the
// first d draws under them source k has had
//
//     ⌊F_k·d / 2^32⌋ − ⌊F_(k-1)·d / 2^32⌋
//
// at every border of a *mixing block* of M >= 1/min weight draws: the quotas of a
// block sum to M, none is negative, and the error stays below one sample for
// ever.  Inside a block the draws are permuted by a key.
//
// Each source is read in order: its n-th draw is position n of its own endless
// sequence, so positions are never skipped or repeated, whatever the weights do.
//
// Weights may change at any draw: a *segment* begins there, with mixing blocks of
// its own.  What came before a segment is one offset a source.
//
//   draws   0 ────── segment 0 ──────┤──── segment 1 ────┤── segment 2 ── …
//           offsets 0                 offsets            offsets
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "base/status.h"

namespace headrace {

inline constexpr uint64_t kWeightOne = uint64_t{1} << 32;
// The least share of a source that is drawn at all is 2^-20: a mixing block is
// then 2^20 draws, 4 MiB while it lasts.
inline constexpr uint64_t kMinWeight = uint64_t{1} << 12;

// Integers in proportion to `shares`, summing to 2^32 (largest remainders).
// Shares are finite, not negative, not all zero; a zero stays zero.
Result<std::vector<uint64_t>> integer_weights(std::span<const double> shares);

struct WeightChange {
  uint64_t draw = 0;
  std::vector<uint64_t> weights;
  bool operator==(const WeightChange&) const = default;
};

// All there is to remember: 16 bytes a source, plus 8 for each change ahead.
struct MixtureState {
  std::vector<uint64_t> offsets;       // draws each source has had when schedule[0] begins
  std::vector<WeightChange> schedule;  // in force, then those to come; by draw
  bool operator==(const MixtureState&) const = default;
};

struct MixtureDraw {
  uint32_t source = 0;
  uint64_t position = 0;  // in the source's endless sequence
};

// One thread at a time: it keeps the block it is in.
class Mixture {
 public:
  // Weights from draw 0 on.
  static Result<Mixture> make(Key key, std::vector<uint64_t> weights);
  // As folded earlier; checked, as it comes from outside.
  static Result<Mixture> restore(Key key, const MixtureState& state);

  size_t sources() const { return segments_.front().offsets.size(); }
  // The first draw it can still tell: history before it is folded away.
  uint64_t first_draw() const { return segments_.front().start; }
  std::span<const uint64_t> weights_at(uint64_t draw) const;

  // Other weights from `draw` on.  Not before an earlier change.
  Status set_weights(std::vector<uint64_t> weights, uint64_t draw);

  // first_draw() <= draw < 2^63.  Sequential draws cost some ns; going back costs the block.
  MixtureDraw at(uint64_t draw);
  // How many of the draws before `draw` each source has had: its next position.
  // Valid until the next call.
  std::span<const uint64_t> counts(uint64_t draw);

  // What a later run needs to go on from `draw`.
  MixtureState fold(uint64_t draw) const;

 private:
  struct Segment {
    uint64_t start = 0;
    uint64_t block = 0;             // M
    std::vector<uint64_t> weights;  // sum to 2^32
    std::vector<uint64_t> offsets;  // of each source at `start`
  };
  // Where we are: `order` is the current block, permuted up to `next`.
  struct Cursor {
    size_t segment = 0;
    uint64_t block = 0;  // number in its segment
    uint64_t next = 0;
    Rng rng{Key(0)};
    std::vector<uint32_t> order;   // sources
    std::vector<uint64_t> counts;  // of each source before draw `next` of the block
  };

  explicit Mixture(Key key) : key_(key) {}
  Status append(std::vector<uint64_t> weights, uint64_t draw, std::vector<uint64_t> offsets);
  size_t segment_of(uint64_t draw) const;
  void seek(uint64_t draw);
  void enter(size_t segment, uint64_t block);
  void fold_next();

  Key key_;
  std::vector<Segment> segments_;
  Cursor cursor_;
};

}  // namespace headrace

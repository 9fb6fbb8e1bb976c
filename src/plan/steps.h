// SPDX-License-Identifier: Apache-2.0
//
// Steps: which positions a rank gets.  A step of global size B at position g is
// the next B positions.  Sorted by (lane, source, position) they are cut into
// equal consecutive parts, one a rank: every rank has the same number of steps,
// and stays with its lanes from step to step.
//
//   step        g ───────────── B positions ─────────────► g+B
//   sorted      lane 0 │ lane 1 │ lane 2 │ lane 3 │ …  lane L-1
//   cut         ├── rank 0 ──┼── rank 1 ──┼── … ──┼── rank R-1 ──┤
//
// Nobody sorts: the positions of an interval that are ≡ m mod 2^d are counted by
// arithmetic, so a rank walks the binary tree of lanes to its part and over it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace headrace {

// What becomes of the positions at the end of an epoch that fill no step.
enum class Tail : unsigned char {
  kDrop,  // left out
  kPad,   // a full step, filled up with positions that wrap around, marked
  kKeep,  // a shorter step, cut evenly; a rank may get none
};

// How an epoch is cut.  `batch` is the global one.
struct StepCut {
  uint64_t batch = 1;
  uint32_t rank = 0;
  uint32_t world = 1;
  Tail tail = Tail::kDrop;
};

// batch and world in [1, 2^31], world divides batch, rank < world.
Status validate(const StepCut& cut);

// Steps from position g to the end of an epoch of `length` positions: the same on every rank.
uint64_t steps_from(uint64_t g, uint64_t length, const StepCut& cut);

// A rank's share of a step of n <= batch positions.
struct StepPart {
  uint64_t first = 0;  // [first, last) of the n positions in their sorted order
  uint64_t last = 0;
  uint64_t pad_first = 0;  // then the pads [pad_first, pad_last): pad i is position i mod length
  uint64_t pad_last = 0;
};
StepPart part_of(uint64_t n, const StepCut& cut);

// A place in an epoch of a source.
struct EpochPlace {
  uint32_t source = 0;
  uint64_t epoch = 0;
  uint64_t position = 0;
  bool operator==(const EpochPlace&) const = default;
};

// The places [begin, end) of a source, in each of the epochs [epoch, epoch + epochs).
struct StepRange {
  uint32_t source = 0;
  uint64_t epoch = 0;
  uint64_t epochs = 1;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Appends the positions [from, to) of a source's endless sequence, whose epochs
// have `length` > 0 places: at most three ranges, in order.
void append_ranges(uint32_t source, uint64_t from, uint64_t to, uint64_t length,
                   std::vector<StepRange>& out);

// One thread at a time; it only keeps scratch memory.
class LaneWalk {
 public:
  // Appends the elements [first, last) of all places in `ranges`, sorted by
  // (lane, source, epoch, position).  The ranges come sorted by (source, epoch);
  // lanes is a power of two.  O((part + log lanes) · ranges met).
  void take(std::span<const StepRange> ranges, uint32_t lanes, uint64_t first, uint64_t last,
            std::vector<EpochPlace>& out);

 private:
  void visit(size_t from, size_t to, unsigned bits, uint64_t residue);
  void emit(size_t from, size_t to, uint64_t residue);

  std::vector<StepRange> met_;  // a stack: the ranges with places in each node of the path
  std::vector<EpochPlace>* out_ = nullptr;
  unsigned lane_bits_ = 0;
  uint64_t skip_ = 0;  // elements still to pass over
  uint64_t want_ = 0;  // and then to append
};

}  // namespace headrace

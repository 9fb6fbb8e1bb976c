// SPDX-License-Identifier: Apache-2.0
#include "plan/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace headrace {
namespace {

constexpr uint64_t kMaxBatch = uint64_t{1} << 31;  // rank · positions stays below 2^62

// The numbers below `end` that are ≡ residue mod 2^bits.
uint64_t count_below(uint64_t end, unsigned bits, uint64_t residue) {
  return (end + (uint64_t{1} << bits) - 1 - residue) >> bits;
}

// The first number from `begin` on that is ≡ residue mod 2^bits.
uint64_t first_from(uint64_t begin, unsigned bits, uint64_t residue) {
  return begin + ((residue - begin) & ((uint64_t{1} << bits) - 1));
}

uint64_t places_of(const StepRange& s, unsigned bits, uint64_t residue) {
  return s.epochs * (count_below(s.end, bits, residue) - count_below(s.begin, bits, residue));
}

}  // namespace

Status validate(const StepCut& cut) {
  if (cut.world < 1 || cut.world > kMaxBatch) {
    return invalid(fmt::format("the number of ranks must be 1 to 2^31, not {}", cut.world));
  }
  if (cut.rank >= cut.world) {
    return invalid(fmt::format("rank {} of {} ranks: ranks count from 0", cut.rank, cut.world));
  }
  if (cut.batch < 1 || cut.batch > kMaxBatch) {
    return invalid(fmt::format("the global batch size must be 1 to 2^31, not {}", cut.batch));
  }
  if (cut.batch % cut.world != 0) {
    return invalid(
        fmt::format("a global batch of {} does not divide by {} ranks", cut.batch, cut.world));
  }
  return {};
}

uint64_t steps_from(uint64_t g, uint64_t length, const StepCut& cut) {
  const uint64_t rest = length - std::min(g, length);
  return rest / cut.batch + (cut.tail != Tail::kDrop && rest % cut.batch != 0);
}

StepPart part_of(uint64_t n, const StepCut& cut) {
  const uint64_t rank = cut.rank;
  StepPart part{.first = rank * n / cut.world, .last = (rank + 1) * n / cut.world};
  if (cut.tail == Tail::kPad) {
    // Whatever the earlier ranks lack to full parts is padded by them.
    const uint64_t full = cut.batch / cut.world;
    part.pad_first = rank * full - part.first;
    part.pad_last = (rank + 1) * full - part.last;
  }
  return part;
}

void append_ranges(uint32_t source, uint64_t from, uint64_t to, uint64_t length,
                   std::vector<StepRange>& out) {
  while (from < to) {
    const uint64_t epoch = from / length;
    const uint64_t begin = from % length;
    if (begin == 0 && to - from >= length) {
      const uint64_t epochs = (to - from) / length;
      out.push_back({source, epoch, epochs, 0, length});
      from += epochs * length;
    } else {
      const uint64_t end = std::min(length, begin + (to - from));
      out.push_back({source, epoch, 1, begin, end});
      from += end - begin;
    }
  }
}

void LaneWalk::take(std::span<const StepRange> ranges, uint32_t lanes, uint64_t first,
                    uint64_t last, std::vector<EpochPlace>& out) {
  out_ = &out;
  lane_bits_ = static_cast<unsigned>(std::countr_zero(lanes));
  skip_ = first;
  want_ = last - first;
  met_.assign(ranges.begin(), ranges.end());
  visit(0, met_.size(), 0, 0);
}

// The node of the lanes whose top `bits` bits are `residue` read backwards, that
// is of the places ≡ residue mod 2^bits; met_[from, to) have some there.
void LaneWalk::visit(size_t from, size_t to, unsigned bits, uint64_t residue) {
  if (bits == lane_bits_) return emit(from, to, residue);
  for (const uint64_t half : {residue, residue + (uint64_t{1} << bits)}) {
    if (want_ == 0) return;
    uint64_t places = 0;
    for (size_t i = from; i < to; ++i) {
      const uint64_t here = places_of(met_[i], bits + 1, half);
      if (here == 0) continue;
      places += here;
      met_.push_back(met_[i]);
    }
    if (places <= skip_) {
      skip_ -= places;
    } else {
      visit(to, met_.size(), bits + 1, half);
    }
    met_.resize(to);
  }
}

void LaneWalk::emit(size_t from, size_t to, uint64_t residue) {
  for (size_t i = from; i < to; ++i) {
    const StepRange s = met_[i];
    const uint64_t each = places_of({.begin = s.begin, .end = s.end}, lane_bits_, residue);
    const uint64_t places = each * s.epochs;
    const uint64_t base = first_from(s.begin, lane_bits_, residue);
    for (uint64_t n = std::min(skip_, places); n < places && want_ > 0; ++n, --want_) {
      out_->push_back({s.source, s.epoch + n / each, base + (n % each << lane_bits_)});
    }
    skip_ -= std::min(skip_, places);
  }
}

}  // namespace headrace

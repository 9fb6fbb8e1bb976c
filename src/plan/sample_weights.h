// SPDX-License-Identifier: Apache-2.0
//
// SampleWeights: an epoch as draws from the samples of a source, in proportion to weights, by
// systematic sampling.
//
// Of D draws sample i expects e_i = D·w_i / W, W the sum of the weights.  With one number r in
// [0, W) that an epoch draws, it gets
//
//     ⌊(D·C_(i+1) + r) / W⌋ − ⌊(D·C_i + r) / W⌋        C_i: the sum of the weights before i
//
// draws: e_i rounded down or up.  They sum to D in every epoch, and over epochs to their shares.
// Draw v of the epoch, in the order of the samples, is then found by a search in C.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/status.h"

namespace headrace {

// Immutable, hence thread-safe.  8 bytes a sample.
class SampleWeights {
 public:
  // Not all 0; their sum is below 2^63, draws in [1, 2^40].  Else kInvalidArgument.
  static Result<std::shared_ptr<const SampleWeights>> make(std::span<const uint64_t> weights,
                                                           uint64_t draws);

  uint64_t samples() const { return ends_.size(); }
  uint64_t draws() const { return draws_; }

  // Draws for each block of samples, about what its samples expect: they sum to draws().  Blocks
  // are for ordering alone, so that a draw beside a border may count with its neighbour.
  Result<std::vector<uint32_t>> blocks(std::span<const uint32_t> samples) const;

  // r of an epoch.
  uint64_t start(uint64_t seed, std::string_view source, uint64_t epoch) const;

  struct Draw {
    uint64_t sample = 0;
    uint64_t repeat = 0;  // which of the sample's draws in the epoch, from 0 on
  };
  // Of draw v < draws(), where r is `start`.
  Draw at(uint64_t start, uint64_t v) const;

  Hash128 fingerprint() const;

 private:
  SampleWeights() = default;
  uint64_t draws_before(uint64_t sum, uint64_t start) const;

  std::vector<uint64_t> ends_;  // C_(i+1)
  uint64_t draws_ = 0;
};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// ReadPolicy: how the bytes of one source are read.  It follows from what its store costs, never
// changes the order of the samples, and may differ between the sources of a blend.
#pragma once

#include <cstdint>
#include <memory>

#include "storage/store.h"

namespace headrace {

class BlockSamples;

struct ReadPolicy {
  // Reads take long: steps are resolved far ahead, and neighbours merge over all of them.
  bool is_far = false;
  // The thread that asks waits for the bytes.
  bool in_caller = true;
  // Whole blocks are read and kept while they are needed, instead of single samples.
  bool runs = false;
  std::shared_ptr<const BlockSamples> block_samples = {};  // where `runs`; null: not known
  // What lies in the page cache is read by the thread that decodes it, just before: it is then in
  // the processor's cache, and no other thread is woken.
  bool late = false;
  // A server that answers at once: what is prepared before a request only delays it.
  bool answers_soon = false;
  // A run whose values are this large on average is read in parts, where they are handed over.
  uint64_t least_part_bytes = 16 << 10;
  uint64_t gap_bytes = 16 << 10;  // two extents nearer than this become one read
  uint64_t most_bytes = 8 << 20;  // and no merged read is longer than this
  // Under way or held at the start, before anything was measured; 0: as of near storage.
  uint64_t first_bytes = 0;
};

// By what the store says of reads of about `read_bytes`, where at most `most_ahead_bytes` may be
// under way.  `runs` and `late` stay false: they depend on memory and processors, which the loader
// knows.
ReadPolicy policy_of(const StoreCost& cost, uint64_t read_bytes, uint64_t most_ahead_bytes);

// How much of a memory budget may be under way or waiting to be decoded.  Samples that are read by
// themselves leave little else to hold; of whole runs the values that are left are held too.
uint64_t most_ahead_bytes(uint64_t budget_bytes, bool is_far, bool runs);
// And as long as nothing has to be given up for it.
uint64_t most_free_ahead_bytes(uint64_t budget_bytes, bool is_far);

// Whether blocks are better read whole than by samples of `mean_bytes`: a request costs more than
// the bytes around the sample, and not any number of requests may be under way.
bool prefers_runs(const StoreCost& cost, uint64_t mean_bytes);

}  // namespace headrace

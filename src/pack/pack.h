// SPDX-License-Identifier: Apache-2.0
//
// pack: any Source, written as shards that open_source() opens.
//
//   DST/shard-000000.tar, shard-000001.tar, …   even: sizes differ by at most one sample
//   DST/shard-000000.tar.hridx, …               so that loading starts at once
//   DST/headrace.json                           counts and checksums, written last
//   DST/headrace.unfinished                     while it is not done: what is; a restart goes on
//   from it
//
// The folder may be one of an object store (s3://bucket/train): a shard is then sent while it is
// written, in parts, or, where its format goes back in its file, from a temporary file.
//
// The same source, fields and options give the same bytes, whatever the threads, the
// machine, and how often it was killed and started again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "index/source.h"
#include "pack/recode.h"
#include "storage/store_options.h"

namespace headrace {

struct PackProgress {
  uint64_t samples_done = 0;
  uint64_t samples = 0;
  uint64_t shards_done = 0;
  uint64_t shards = 0;
  uint64_t bytes = 0;  // of the samples done
};

struct PackOptions {
  std::string format = "tar";
  uint64_t shards = 0;                         // 0: as many as shard_bytes makes
  uint64_t shard_bytes = uint64_t{256} << 20;  // about
  uint32_t for_ranks = 1;                      // the number of shards is a multiple of
  uint32_t for_workers = 1;                    //   for_ranks * for_workers
  bool keep_order = false;               // false: shuffled, so that each shard is like the whole
  uint64_t seed = 0;                     // of the shuffle
  unsigned threads = 0;                  // shards written at a time; 0: as many as cores
  std::vector<std::string> fields = {};  // to write; empty: all
  std::vector<std::string> drop = {};    // of these, not to write
  std::vector<std::pair<std::string, std::string>> rename = {};  // new name, old name
  RecodeOptions recode = {};
  std::vector<std::string> recode_fields = {};  // pictures that `recode` is for; empty: all
  // Samples held between source and shards; 0: an eighth of the usable memory, at most 8 GiB.
  uint64_t memory_bytes = 0;
  StoreOptions storage = current_store_options();          // of a folder that is a URL
  std::function<void(const PackProgress&)> progress = {};  // from any thread, one at a time
  const std::atomic<bool>* cancel = nullptr;
};

struct PackResult {
  uint64_t samples = 0;
  uint64_t shards = 0;
  uint64_t shards_kept = 0;   // that an earlier run had finished
  uint64_t samples_kept = 0;  // in these
  uint64_t bytes = 0;         // of all shards, companions included
  bool was_complete = false;  // there was nothing to do
};

// What a pack will be, from a few samples.
struct PackEstimate {
  uint64_t samples = 0;
  uint64_t shards = 0;
  uint64_t sample_bytes = 0;  // of the values of a sample, on average, at least 1
  uint64_t free_bytes = 0;    // where the folder is, or will be
  uint64_t bytes() const { return samples * sample_bytes; }
};

Status validate(const PackOptions& options);

// Checks the options as pack() does, reads up to 16 samples, and writes nothing.
Result<PackEstimate> estimate_pack(const Source& source, const std::string& folder,
                                   const PackOptions& options = {});

// `folder` is new, empty, or holds the same pack, finished or not; anything else in it is
// refused by name.  Waits while another process packs into it.  A disk that is too small, by
// the estimate, is kExhausted before anything is written.
Result<PackResult> pack(const Source& source, const std::string& folder,
                        const PackOptions& options = {});

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/mutex.h"
#include "engine/unit_cache.h"
#include "format/format.h"
#include "index/source.h"
#include "pack/journal.h"
#include "pack/layout.h"
#include "pack/pack.h"
#include "pack/selection.h"
#include "pack/shard_writer.h"
#include "pack/wave.h"
#include "plan/permutation.h"

namespace headrace {

// One pack into one folder, which the caller has locked.  run() once; what it starts in
// parallel is its own affair.
class Packer {
 public:
  Packer(const Source& source, Selection selection, const Format& format, const PackLayout& layout,
         std::string folder, const PackOptions& options, const PackEstimate& estimate,
         std::shared_ptr<const Store> store);

  // All that fixes the bytes.
  Hash128 plan() const;
  Result<PackResult> run();

 private:
  // A shard that is to be written, and where its samples lie among all that are.
  struct Job {
    uint64_t shard = 0;
    uint64_t begin = 0;  // place of its first sample
    std::unique_ptr<ShardWriter> writer = {};
    std::vector<uint64_t> sorted = {};  // its samples by key, where the format wants them so
  };
  // A sample of the source, and its place among all that are to be written.
  struct Wish {
    uint64_t sample = 0;
    uint64_t place = 0;
  };

  std::string head() const;
  std::string shard_name(uint64_t shard) const;
  uint64_t samples_of(uint64_t shard) const {
    return layout_.begin(shard + 1) - layout_.begin(shard);
  }
  Status take_over(const Journal& journal, PackResult& result);
  Status check_room() const;
  void list_jobs();

  Status write_all(Journal& journal);
  std::unique_ptr<Wave> next_wave(uint64_t begin) const;
  std::vector<Wish> wishes_of(const Wave& wave);
  // The sample of the source at a place of the layout.
  // Whether some shard would get two samples of one key, where its format cannot hold them.
  Status check_keys();
  uint64_t sample_at(uint64_t p) { return layout_.keep_order ? p : order_.at(p); }
  void sort_job(Job& job);
  size_t job_of(uint64_t place) const;
  uint64_t job_end(size_t job) const {
    return job + 1 < jobs_.size() ? jobs_[job + 1].begin : to_write_;
  }
  Status read_some(std::span<const Wish> wishes, Wave& wave);
  Status write_some(size_t job, Wave& wave, Journal& journal);
  Status finish_job(Job& job, Journal& journal);
  Status describe_folder() const;
  Status index(uint64_t shard) const;
  Status check_cancel() const;
  void report(uint64_t samples, uint64_t bytes, uint64_t shards);

  const Source& source_;
  const Selection selection_;
  const Format& format_;
  const PackLayout layout_;
  const std::string folder_;
  const PackOptions& options_;
  const PackEstimate estimate_;
  const unsigned threads_;
  const uint64_t memory_;  // of one wave, of which there are two
  const std::shared_ptr<const Store> store_;
  const bool has_whole_units_;

  std::vector<PackedShard> shards_;  // sizes of 0 until they are there
  std::vector<Job> jobs_;
  uint64_t to_write_ = 0;  // samples
  uint64_t mean_bytes_;    // of a sample in memory, as far as is known
  Permutation order_;
  UnitCache units_;
  Mutex mu_;
  PackProgress progress_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// IndexedSource: a data set by its parts, whatever format they were made from.
//
//   sample ──► shard (ShardTable) ──► group of 64 (a slot that holds it unpacked) ──► Request
//
// Parts are all at hand, or loaded as samples come up and forgotten again.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/per_process.h"
#include "index/part.h"
#include "index/shards.h"
#include "index/source.h"
#include "storage/lru.h"

namespace headrace {

// Of a file of `store`; almost all have what they need in `stored`.
using OpenUnit = Status (*)(const Store& store, const std::string& path, const Unit& unit,
                            Bytes stored, Buffer& decoded);

struct IndexedParts {
  ShardTable shards;
  Schema schema;
  std::shared_ptr<const Store> store;
  std::vector<PartPointer> parts = {};                         // of all shards, or
  std::function<Result<PartPointer>(size_t shard)> load = {};  // one at a time
  OpenUnit decode_unit = nullptr;                              // null: no unit opens as a whole
  Schema described = {};  // `schema` where more is known of its fields than the parts say
};

// Immutable, hence thread-safe: the slots are caches behind locks of their own.
class IndexedSource final : public Source {
 public:
  explicit IndexedSource(IndexedParts parts);

  const Schema& schema() const override {
    return parts_.described.empty() ? parts_.schema : parts_.described;
  }
  uint64_t size() const override { return parts_.shards.samples(); }
  const Blocks& blocks() const override { return parts_.shards.blocks(); }
  Hash128 fingerprint() const override { return parts_.shards.fingerprint(); }
  Status needs(const SampleAsk& ask, Request& out) const override;
  bool run_of(uint64_t sample, Unit& run) const override;
  Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const override;
  const Store& store() const override { return *parts_.store; }
  std::string file_path(uint32_t file) const override;
  std::string key(uint64_t sample) const override;
  Status keys(uint64_t begin, uint64_t end, std::vector<std::string>& out) const override;

  const ShardTable& shards() const { return parts_.shards; }

 private:
  static constexpr uint32_t kAbsent = ~uint32_t{0};
  // A part, and where it has each of the data set's fields.
  struct Loaded {
    PartPointer part;
    std::vector<uint32_t> local_field;  // kAbsent: not in this shard
  };
  using LoadedPointer = std::shared_ptr<const Loaded>;
  // 512 unpacked groups, about 5 KB each with two fields: enough for the pools that one
  // rank draws from at a time.  Direct-mapped: one lock, no list to keep.
  static constexpr size_t kSlots = 512;
  // Heads of parts that are kept when not all are at hand: about 3 KB each.
  static constexpr size_t kLoadedParts = 4096;
  struct Slot {
    Mutex mu;
    uint64_t group HEADRACE_GUARDED_BY(mu) = ~uint64_t{0};  // counted over all shards' samples
    LoadedPointer loaded HEADRACE_GUARDED_BY(mu);
    PartGroup unpacked HEADRACE_GUARDED_BY(mu);
  };

  LoadedPointer map_fields(PartPointer part) const;
  Result<LoadedPointer> loaded(size_t shard) const;
  Status fill_slot(Slot& slot, size_t shard, uint64_t local) const HEADRACE_REQUIRES(slot.mu);
  void take_fields(const Loaded& loaded, const PartGroup& group, uint64_t row, size_t shard,
                   std::span<const uint32_t> fields, Request& out) const;
  Status read_key(uint64_t sample, std::string& out) const;

  const IndexedParts parts_;
  std::vector<LoadedPointer> all_;  // of every shard; empty where they are loaded one at a time
  // What threads share, each behind its lock; a forked child makes its own.
  struct Recent {
    Mutex mu;
    Lru<size_t, LoadedPointer> parts HEADRACE_GUARDED_BY(mu){kLoadedParts};
    std::array<Slot, kSlots> slots;
  };
  const PerProcess<Recent> recent_;
  mutable std::once_flag blocks_counted_;
  mutable std::vector<uint64_t> block_begin_;  // first sample of each block; made for the first run
};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// What Python holds of the core's objects.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "index/indexed_source.h"
#include "plan/sample_groups.h"
#include "plan/sample_weights.h"
#include "storage/cache/cache.h"
#include "storage/stage/staged_store.h"

namespace headrace::py {

struct ShardSummary {
  std::string name;
  uint64_t bytes = 0;
  uint64_t samples = 0;
};

// What an object in Python has cost: read by loader.stats().
struct ItemCost {
  std::string name;
  bool in_processes = false;  // these make its samples, in memory that they share
  std::atomic<uint64_t> samples{0}, busy_ns{0};
};

struct SourceHandle {
  std::shared_ptr<const Source> source;
  std::shared_ptr<const IndexedSource> whole;  // what it is, or a view of
  std::string format;
  std::vector<std::string> notices;  // what the user should hear once
  std::vector<std::string> classes;  // names of the class numbers, of class folders
  std::vector<ShardSummary> shards;
  uint64_t shards_built = 0;           // indexed now, and not found ready
  std::vector<std::string> by_python;  // of its files those that are names for what Python reads
  std::shared_ptr<const SampleWeights> weights;  // of its samples; null: each comes once an epoch
  std::shared_ptr<const Grouping> groups;        // delivered together; null: each alone
  std::shared_ptr<const StagedStore> staged;     // that it is read through; null: none
  std::shared_ptr<const CacheStore> cache;       // that it is read through; null: none
  std::map<std::string, std::string> part_of;    // of a join: the part that each field is of
  // Fields whose values are Python objects of this process, pickled by it.  Never from a file.
  std::set<std::string> objects = {};
  std::vector<std::shared_ptr<const ItemCost>> item_costs = {};
};

}  // namespace headrace::py

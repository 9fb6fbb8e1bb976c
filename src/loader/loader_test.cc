// SPDX-License-Identifier: Apache-2.0
//
// From a tar in memory to batches: the boxes put together, without Python.
#include "loader/loader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "format/registry.h"
#include "loader/dataset.h"
#include "open/open.h"
#include "storage/fault.h"
#include "storage/memory.h"
#include "storage/sink.h"

namespace headrace {
namespace {

// `samples` members "0000.txt", "0000.cls", … in `shards` tars of a memory store.
std::shared_ptr<MemoryStore> make_shards(int shards, int samples) {
  auto store = std::make_shared<MemoryStore>();
  for (int s = 0, i = 0; s < shards; ++s) {
    std::vector<std::byte> bytes;
    auto writer = find_format("tar").value()->create({.file = memory_sink(bytes)}).value();
    for (; i < samples * (s + 1) / shards; ++i) {
      const std::string key = std::to_string(10000 + i);
      const std::string text = "text of " + key;
      const std::string label = std::to_string(i % 7);
      const RecordValue values[] = {{"txt", Kind::kText, Storage::kExtent, as_bytes(text)},
                                    {"cls", Kind::kInt, Storage::kExtent, as_bytes(label)}};
      EXPECT_TRUE(writer->append({key, values}).ok());
    }
    EXPECT_TRUE(writer->finish().ok());
    store->put("data/s" + std::to_string(s) + ".tar", std::move(bytes));
  }
  return store;
}

std::shared_ptr<const Source> open_shards(std::shared_ptr<const Store> store, int shards) {
  return open_source({"data/s{0.." + std::to_string(shards - 1) + "}.tar"},
                     {.store = std::move(store), .keep_sidecars = false})
      .value()
      .source;
}

std::vector<FieldRequest> fields() {
  return {{.output = "text", .field = "txt", .what = "text"},
          {.output = "label", .field = "cls", .what = "scalar"}};
}

std::unique_ptr<Loader> make_loader(std::shared_ptr<const Source> source, uint64_t batch,
                                    uint32_t rank, uint32_t world, int threads = 2) {
  LoaderOptions o;
  o.plan.seed = 5;
  o.plan.cut = {batch * world, rank, world, Tail::kKeep};
  o.threads = threads;
  return Loader::make({{"", std::move(source), fields()}}, o).value();
}

// The samples of all that is left from `from` on, each checked; or the first error.
Result<std::vector<int64_t>> drain(Loader& loader, PlanPosition from, size_t most = ~size_t{0}) {
  HEADRACE_TRY(loader.begin(from, false, 0));
  std::vector<int64_t> seen;
  for (size_t k = 0; k < most; ++k) {
    std::unique_ptr<Batch> batch;
    HEADRACE_ASSIGN(const Engine::Next what, loader.next(batch, 20000));
    if (what == Engine::Next::kTimeout) return internal("the loader hangs");
    if (what == Engine::Next::kEnd) break;
    for (size_t i = 0; i < batch->indices.size(); ++i) {
      const int64_t n = batch->indices[i];
      if (as_text(batch->columns[0].items[i]->bytes()) != "text of " + std::to_string(10000 + n))
        return internal("a slot holds another sample's text");
      if (load_le<int64_t>(batch->columns[1].values->bytes().subspan(8 * i)) != n % 7)
        return internal("a slot holds another sample's label");
      seen.push_back(n);
    }
  }
  return seen;
}

TEST(LoaderTest, EverySampleOnceOverRanks) {
  const auto source = open_shards(make_shards(3, 101), 3);
  for (const uint32_t world : {1u, 2u, 5u}) {
    std::vector<int64_t> all;
    for (uint32_t rank = 0; rank < world; ++rank) {
      const auto loader = make_loader(source, 4, rank, world);
      const auto mine = drain(*loader, {0, 0}).value();
      all.insert(all.end(), mine.begin(), mine.end());
    }
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), 101u);
    for (int64_t i = 0; i < 101; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], i);
  }
}

TEST(LoaderTest, ThreadsDoNotChangeTheOrder) {
  const auto source = open_shards(make_shards(3, 101), 3);
  const auto once = drain(*make_loader(source, 8, 0, 1, 1), {0, 0}).value();
  for (const int threads : {2, 7})
    EXPECT_EQ(drain(*make_loader(source, 8, 0, 1, threads), {0, 0}).value(), once);
}

TEST(LoaderTest, ResumeGivesExactlyTheRest) {
  const auto source = open_shards(make_shards(3, 101), 3);
  const auto straight = drain(*make_loader(source, 8, 0, 1), {0, 0}).value();
  for (const size_t steps : {size_t{1}, size_t{5}, size_t{12}}) {
    auto first = make_loader(source, 8, 0, 1);
    auto seen = drain(*first, {0, 0}, steps).value();
    auto second = make_loader(source, 3, 0, 1);
    ASSERT_TRUE(second->load(first->state({0, 8 * steps})).ok());
    const auto rest = drain(*second, {0, 8 * steps}).value();
    seen.insert(seen.end(), rest.begin(), rest.end());
    EXPECT_EQ(seen, straight);
  }
}

TEST(LoaderTest, StorageFaultsReachTheConsumer) {
  auto faulty = std::make_shared<FaultStore>(make_shards(3, 101));
  const auto source = open_shards(faulty, 3);
  faulty->add({.path = "s1.tar", .fail_read = 3});
  const auto failed = drain(*make_loader(source, 8, 0, 1), {0, 0});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::kUnavailable);
  EXPECT_NE(failed.status().text().find("s1.tar"), std::string::npos) << failed.status().text();
  faulty->clear();
  EXPECT_EQ(drain(*make_loader(source, 8, 0, 1), {0, 0}).value().size(), 101u);
}

TEST(LoaderTest, ShardThatShrankIsAnErrorThatNamesIt) {
  auto faulty = std::make_shared<FaultStore>(make_shards(3, 101));
  const auto source = open_shards(faulty, 3);
  faulty->add({.path = "s2.tar", .truncate_at = 4096});
  const auto failed = drain(*make_loader(source, 8, 0, 1), {0, 0});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::kCorrupt);
  EXPECT_NE(failed.status().text().find("s2.tar"), std::string::npos) << failed.status().text();
}

TEST(LoaderTest, RunsGiveTheSameBatchesWithFewerReads) {
  auto counted = std::make_shared<FaultStore>(make_shards(3, 300));
  const auto source = open_shards(counted, 3);
  LoaderOptions o;
  o.plan.seed = 5;
  o.plan.shuffle = Shuffle::kPool;
  o.plan.cut = {8, 0, 1, Tail::kKeep};
  const auto single = drain(*Loader::make({{"", source, fields()}}, o).value(), {0, 0}).value();
  const uint64_t reads_of_samples = counted->reads();
  o.read_runs = true;
  const auto loader = Loader::make({{"", source, fields()}}, o).value();
  EXPECT_TRUE(loader->reads_runs());
  EXPECT_EQ(drain(*loader, {0, 0}).value(), single);
  EXPECT_LT(counted->reads() - reads_of_samples, reads_of_samples / 10);
}

TEST(LoaderTest, UnknownFieldListsWhatThereIs) {
  const auto source = open_shards(make_shards(1, 5), 1);
  const auto r =
      Loader::make({{"", source, {{.output = "x", .field = "jpgg", .what = "image"}}}}, {});
  EXPECT_NE(r.status().text().find("it has txt (text), cls (int)"), std::string::npos)
      << r.status().text();
}

TEST(DatasetTest, SamplesByNumberAsTheyLie) {
  const auto source = open_shards(make_shards(2, 9), 2);
  const auto dataset = Dataset::make(source, {}).value();
  const auto sample = dataset->at(7).value();
  EXPECT_EQ(as_text(sample[0].bytes->bytes()), "text of 10007");
  EXPECT_EQ(load_le<int64_t>(sample[1].bytes->bytes()), 0);
  EXPECT_EQ(dataset->at(9).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace headrace

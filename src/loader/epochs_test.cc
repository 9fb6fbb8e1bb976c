// SPDX-License-Identifier: Apache-2.0
#include "loader/epochs.h"

#include <gtest/gtest.h>

#include "format/registry.h"
#include "open/open.h"
#include "storage/memory.h"
#include "storage/sink.h"

namespace headrace {
namespace {

std::shared_ptr<const Source> make_data(int samples) {
  auto store = std::make_shared<MemoryStore>();
  std::vector<std::byte> bytes;
  auto writer = find_format("tar").value()->create({.file = memory_sink(bytes)}).value();
  for (int i = 0; i < samples; ++i) {
    const std::string label = std::to_string(i);
    const RecordValue value{"cls", Kind::kInt, Storage::kExtent, as_bytes(label)};
    EXPECT_TRUE(writer->append({std::to_string(10000 + i), {&value, 1}}).ok());
  }
  EXPECT_TRUE(writer->finish().ok());
  store->put("x.tar", std::move(bytes));
  return open_source({"x.tar"}, {.store = std::move(store), .keep_sidecars = false}).value().source;
}

// A loader of 30 samples in batches of 10, or of a blend of two such.
struct Training {
  explicit Training(bool is_blend = false, uint32_t rank = 0, uint32_t world = 1) {
    LoaderOptions o;
    o.plan.seed = 5;
    o.plan.cut = {10, rank, world, Tail::kKeep};
    o.threads = 2;
    const std::vector<FieldRequest> number{{.output = "n", .field = "cls", .what = "scalar"}};
    std::vector<LoaderSource> sources{{"", make_data(30), number}};
    if (is_blend) {
      sources = {{"a", make_data(30), number}, {"b", make_data(40), number}};
      o.plan.weights = {1, 1};
      o.plan.epoch_draws = 300;
    }
    loader = Loader::make(sources, o).value();
    epochs.emplace(*loader);
  }

  // Up to `most` batches of the running epoch: (source, sample).
  std::vector<std::pair<uint32_t, int64_t>> take(size_t most) {
    std::vector<std::pair<uint32_t, int64_t>> out;
    for (size_t k = 0; k < most; ++k) {
      std::unique_ptr<Batch> batch;
      EXPECT_NE(loader->next(batch, 20000).value(), Engine::Next::kTimeout);
      if (!batch) break;
      for (size_t i = 0; i < batch->indices.size(); ++i)
        out.emplace_back(batch->sources[i], batch->indices[i]);
      epochs->received(batch->after);
    }
    return out;
  }

  std::unique_ptr<Loader> loader;
  std::optional<Epochs> epochs;
};

TEST(EpochsTest, one_epoch_follows_the_other) {
  Training run;
  EXPECT_EQ(run.epochs->next(), 0u);
  for (uint64_t n = 0; n < 3; ++n) {
    EXPECT_EQ(run.epochs->next(), n);
    EXPECT_EQ(run.epochs->begin(n, {}).value().steps, 3u);
    EXPECT_EQ(run.epochs->next(), n) << "it has given no batch yet";
    run.take(1);
    EXPECT_EQ(run.epochs->next(), n + 1) << "the unfinished one is ended by the next";
    run.take(2);
    EXPECT_EQ(run.epochs->position(), (PlanPosition{n + 1, 0}));
  }
}

TEST(EpochsTest, an_epoch_is_over_when_another_begins_or_a_state_is_loaded) {
  Training run;
  const uint64_t first = run.epochs->begin(0, {}).value().generation;
  EXPECT_TRUE(run.epochs->is_current(first));
  const uint64_t second = run.epochs->begin(0, {}).value().generation;
  EXPECT_FALSE(run.epochs->is_current(first));
  EXPECT_TRUE(run.epochs->is_current(second));
  ASSERT_TRUE(run.epochs->load(run.epochs->state()).ok());
  EXPECT_FALSE(run.epochs->is_current(second));
}

TEST(EpochsTest, a_loaded_state_allows_its_own_epoch_alone) {
  Training first;
  ASSERT_TRUE(first.epochs->begin(4, {}).ok());
  first.take(1);
  Training run;
  ASSERT_TRUE(run.epochs->load(first.epochs->state()).ok());
  EXPECT_EQ(run.epochs->next(), 4u);
  EXPECT_EQ(run.epochs->begin(5, {}).status().message(),
            "the loaded state stands in epoch 4, not 5: go on with loader.epoch(4) or `for epoch, "
            "batches in loader.epochs(total)`, or make a new Loader to start epoch 5 afresh");
  EXPECT_FALSE(run.epochs->set_epoch(3).ok());
  EXPECT_EQ(run.epochs->begin(4, {}).value().steps, 2u);
  EXPECT_EQ(run.take(9), first.take(9));
  EXPECT_TRUE(run.epochs->begin(9, {}).ok()) << "it was gone on from";
}

TEST(EpochsTest, set_epoch_names_the_next_one) {
  Training run;
  ASSERT_TRUE(run.epochs->set_epoch(7).ok());
  EXPECT_EQ(run.epochs->next(), 7u);
  ASSERT_TRUE(run.epochs->begin(7, {}).ok());
  run.take(3);
  EXPECT_EQ(run.epochs->next(), 8u);
}

TEST(EpochsTest, the_next_epoch_is_prepared_where_the_caller_goes_there) {
  Training straight;
  std::vector<std::pair<uint32_t, int64_t>> want;
  for (uint64_t n = 0; n < 4; ++n) {
    ASSERT_TRUE(straight.epochs->begin(n, {}).ok());
    const auto got = straight.take(3);
    want.insert(want.end(), got.begin(), got.end());
  }
  Training run;
  std::vector<std::pair<uint32_t, int64_t>> seen;
  for (uint64_t n = 0; n < 4; ++n) {
    EXPECT_EQ(run.loader->continues_with(n), n > 0);
    ASSERT_TRUE(run.epochs->begin(n, 4).ok());
    const auto got = run.take(3);
    seen.insert(seen.end(), got.begin(), got.end());
  }
  EXPECT_EQ(seen, want);
}

TEST(EpochsTest, weights_of_a_running_epoch_give_the_order_of_one_that_knew_them) {
  for (const uint32_t world : {1u, 2u})
    for (uint32_t rank = 0; rank < world; ++rank)
      for (const uint64_t told : {0u, 3u, 7u, 8u}) {
        Training knew(true, rank, world);
        ASSERT_TRUE(knew.epochs->set_weights({0, 1}, 8).ok());
        ASSERT_TRUE(knew.epochs->begin(0, 2).ok());
        Training run(true, rank, world);
        ASSERT_TRUE(run.epochs->begin(0, 2).ok());
        auto seen = run.take(told);
        ASSERT_TRUE(run.epochs->set_weights({0, 1}, 8).ok());
        EXPECT_FALSE(told > 0 && run.epochs->set_weights({1, 1}, told - 1).ok());
        const auto rest = run.take(60 - told);
        seen.insert(seen.end(), rest.begin(), rest.end());
        EXPECT_EQ(seen, knew.take(60)) << rank << '/' << world << ' ' << told;
        EXPECT_EQ(run.epochs->state(), knew.epochs->state());
      }
}

TEST(EpochsTest, weights_that_make_no_sense_change_nothing) {
  Training straight(true);
  ASSERT_TRUE(straight.epochs->begin(0, {}).ok());
  Training run(true);
  ASSERT_TRUE(run.epochs->begin(0, {}).ok());
  auto seen = run.take(3);
  EXPECT_FALSE(run.epochs->set_weights({0, 0}, 5).ok());
  EXPECT_FALSE(run.epochs->set_weights({1}, 5).ok());
  EXPECT_FALSE(run.epochs->set_weights({1, 1}, uint64_t{1} << 62).ok());
  const auto rest = run.take(60);
  seen.insert(seen.end(), rest.begin(), rest.end());
  EXPECT_EQ(seen, straight.take(60));
}

}  // namespace
}  // namespace headrace

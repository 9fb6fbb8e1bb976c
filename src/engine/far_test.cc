// SPDX-License-Identifier: Apache-2.0
//
// Storage that is far away: reads go on without slots, neighbours merge over the whole window,
// stopping waits for nobody.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "engine/engine_fixture.h"
#include "storage/fault.h"
#include "storage/test_stores.h"

namespace headrace {
namespace {

using std::chrono::steady_clock;

ReadPolicy far_policy() {
  return {.is_far = true, .in_caller = false, .gap_bytes = 64 << 10, .most_bytes = 8 << 20};
}

// Keeps reads until so many wait, then completes them all: an engine that has fewer under way
// never gets any.
class GateStore final : public StoreWrapper {
 public:
  GateStore(std::shared_ptr<const Store> inner, size_t wanted)
      : StoreWrapper(std::move(inner)), wanted_(wanted) {}
  void read(std::span<ReadRequest> requests) const override {
    std::vector<ReadRequest> now;
    {
      MutexLock lock(mu_);
      for (ReadRequest& r : requests) waiting_.push_back(std::move(r));
      if (!is_open_ && waiting_.size() < wanted_) return;
      is_open_ = true;
      now.swap(waiting_);
    }
    inner().read(now);
  }

 private:
  const size_t wanted_;
  mutable Mutex mu_;
  mutable std::vector<ReadRequest> waiting_ HEADRACE_GUARDED_BY(mu_);
  mutable bool is_open_ HEADRACE_GUARDED_BY(mu_) = false;
};

TEST(FarTest, reads_do_not_wait_for_slots) {
  Scene s;
  s.samples = 2000;
  s.store = std::make_shared<GateStore>(TestSource::fill(s.samples), 1000);
  s.policy = far_policy();
  s.policy.most_bytes = 0;  // nothing merges: a read each
  s.options = {.compute_threads = 2, .io_threads = 2, .batches_ahead = 3};
  EXPECT_EQ(run_once(s).value(), expected(s.samples));
}

TEST(FarTest, neighbours_merge_over_the_whole_window) {
  for (const uint64_t stride : {uint64_t{1}, uint64_t{7}}) {
    Scene s;
    s.samples = 2000;
    s.stride = stride;
    const auto counted = std::make_shared<FaultStore>(TestSource::fill(s.samples));
    s.store = counted;
    s.policy = far_policy();
    // One I/O thread resolves all that fits its window before it reads: nothing depends on who is
    // faster, and of two hundred files of ten samples each is one read.
    s.options = {.compute_threads = 2, .io_threads = 1};
    EXPECT_EQ(run_once(s).value(), expected(s.samples, stride));
    EXPECT_EQ(counted->reads(), s.samples / kPerFile) << stride;
  }
}

TEST(FarTest, every_kind_of_unit_and_every_order_comes_right_through_latency) {
  for (const uint32_t encoding : {0u, 1u})
    for (const bool runs : {false, true})
      for (const uint64_t stride : {uint64_t{1}, uint64_t{7}})
        for (const uint64_t budget : {uint64_t{1}, uint64_t{50'000}, uint64_t{1} << 30}) {
          Scene s;
          s.samples = 500;
          s.stride = stride;
          s.encoding = encoding;
          s.store = std::make_shared<LatencyStore>(
              TestSource::fill(s.samples, encoding == 0 ? 0 : 1),
              LatencyOptions{.latency = std::chrono::milliseconds(1)});
          s.policy = far_policy();
          s.policy.runs = runs;
          s.options = {.compute_threads = 2,
                       .io_threads = 2,
                       .memory_budget_bytes = budget,
                       .ranges_first_bytes = 100'000};
          EXPECT_EQ(run_once(s).value(), expected(s.samples, stride))
              << encoding << runs << stride << ' ' << budget;
        }
}

TEST(FarTest, runs_are_read_as_far_ahead_as_the_read_ahead_says_and_no_further) {
  Scene s;
  s.samples = 20'000;
  s.stride = 1;
  s.store = TestSource::fill(s.samples);
  s.policy = far_policy();
  s.policy.runs = true;
  s.options = {.compute_threads = 2,
               .io_threads = 2,
               .memory_budget_bytes = uint64_t{1} << 30,
               .read_ahead_bytes = 100'000,
               .ranges_first_bytes = 0};
  auto engine = make_engine(s);
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch, s.stride)).ok());
  std::unique_ptr<Batch> first;
  ASSERT_TRUE(engine->next(first, 20000).ok());
  // The consumer takes no more.  All of it would be read within some milliseconds.
  const auto begin = steady_clock::now();
  while (steady_clock::now() - begin < std::chrono::milliseconds(200)) {
    ASSERT_LE(engine->stats().read.bytes, 400'000u) << "of " << s.samples * kSample;
    std::this_thread::yield();
  }
  EXPECT_EQ(drain(*engine).value().size(), s.samples - s.batch);
}

// Half of the samples of some files, all of many others, and then the other half.
class HalvesFeed final : public Feed {
 public:
  HalvesFeed(uint64_t files, uint64_t others) {
    add(0, files, 0, kPerFile / 2);
    add(files, files + others, 0, kPerFile);
    add(0, files, kPerFile / 2, kPerFile);
  }
  Result<bool> next(FeedStep& out) override {
    if (g_ >= samples_.size()) return false;
    for (uint64_t i = 0; i < 8 && g_ < samples_.size(); ++i, ++g_)
      out.tasks.push_back({0, samples_[g_], 0, g_, true});
    out.after = {0, g_, g_ == samples_.size()};
    return true;
  }
  bool substitute(const Task&, uint64_t, Task&) override { return false; }
  const std::vector<int64_t> expected() const { return {samples_.begin(), samples_.end()}; }

 private:
  void add(uint64_t first_file, uint64_t end_file, uint64_t first, uint64_t end) {
    for (uint64_t file = first_file; file < end_file; ++file)
      for (uint64_t k = first; k < end; ++k) samples_.push_back(file * kPerFile + k);
  }
  std::vector<uint64_t> samples_;
  uint64_t g_ = 0;
};

// A run that is used in part stays, however far ahead others are read; what nobody uses is taken.
TEST(FarTest, runs_are_read_beyond_half_of_the_budget_where_nothing_is_given_up) {
  constexpr uint64_t kBudget = 4'000'000, kHalves = 120, kOthers = 800;
  Scene s;
  s.samples = (kHalves + kOthers) * kPerFile;
  const auto counted = std::make_shared<FaultStore>(std::make_shared<LatencyStore>(
      TestSource::fill(s.samples), LatencyOptions{.latency = std::chrono::milliseconds(30)}));
  s.store = counted;
  s.policy = far_policy();
  s.policy.runs = true;
  s.policy.first_bytes = kBudget;  // as far ahead as is allowed
  s.options = {.compute_threads = 2,
               .io_threads = 2,
               .memory_budget_bytes = kBudget,
               .ranges_first_bytes = 0};
  auto engine = make_engine(s);
  auto feed = std::make_unique<HalvesFeed>(kHalves, kOthers);
  const std::vector<int64_t> expected = feed->expected();
  ASSERT_TRUE(engine->start(std::move(feed)).ok());
  EXPECT_EQ(drain(*engine).value(), expected);
  // A buffer that is freed counts twice for a moment, which may cost a run.
  EXPECT_LE(counted->reads(), kHalves + kOthers + 5);
  // The halves that wait take 0.3 of it.
  EXPECT_GT(engine->stats().memory_peak, kBudget / 10 * 9);
}

TEST(FarTest, near_and_far_sources_mix) {
  const auto decoder = std::make_shared<TestDecoder>();
  const auto near = std::make_shared<TestSource>(TestSource::fill(100), 100);
  const auto far = std::make_shared<TestSource>(
      std::make_shared<LatencyStore>(TestSource::fill(100),
                                     LatencyOptions{.latency = std::chrono::milliseconds(1)}),
      100);
  Engine engine({{near, 0, {0}, {decoder}}, {far, 1, {0}, {decoder}, far_policy()}},
                {{ColumnSpec{"data", decoder->output(), Packing::kDense}}},
                {.compute_threads = 2, .io_threads = 2});
  ASSERT_TRUE(engine.start(std::make_unique<TestFeed>(100, 8, 7, 2)).ok());
  EXPECT_EQ(drain(engine).value().size(), 100u);
}

TEST(FarTest, an_epoch_with_a_thousand_reads_that_nobody_answers_stops_at_once) {
  Scene s;
  s.samples = 4000;
  const auto silent = std::make_shared<SilentStore>(TestSource::fill(s.samples));
  s.store = silent;
  s.policy = far_policy();
  s.policy.most_bytes = 0;
  s.options = {.compute_threads = 2, .io_threads = 2};
  auto engine = make_engine(s);
  constexpr auto kAtOnce = std::chrono::milliseconds(100);
  auto best = steady_clock::duration::max();  // a busy machine may hold up a round, or many
  for (int round = 0; round < 8 || (round < 40 && best >= kAtOnce); ++round) {
    ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
    while (engine->stats().reads_under_way < 1000) std::this_thread::yield();
    const auto begin = steady_clock::now();
    engine->stop();
    best = std::min(best, steady_clock::now() - begin);
    EXPECT_EQ(engine->stats().reads_under_way, 0u);
    EXPECT_EQ(engine->stats().memory_used, 0u);
  }
  EXPECT_LT(best, kAtOnce);
}

TEST(FarTest, a_read_that_fails_later_reaches_the_consumer_with_its_file) {
  Scene s;
  s.store =
      std::make_shared<FailLaterStore>(TestSource::fill(100), FailLaterOptions{.fail_read = 5});
  s.policy = far_policy();
  s.options = {.compute_threads = 2, .io_threads = 2};
  const auto r = run_once(s);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().place().sample, -1);
}

TEST(FarTest, memory_stays_within_its_budget_for_lists_too) {
  for (const Packing packing :
       {Packing::kDense, Packing::kList, Packing::kRagged, Packing::kPadded})
    for (const bool is_far : {false, true}) {
      Scene s;
      s.samples = 5000;
      s.store = TestSource::fill(s.samples);
      s.packing = packing;
      if (is_far) s.policy = far_policy();
      constexpr uint64_t kBudget = 400'000;
      s.options = {.compute_threads = 2,
                   .io_threads = 2,
                   .memory_budget_bytes = kBudget,
                   .batches_ahead = 64};
      auto engine = make_engine(s);
      ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
      size_t seen = 0;
      while (true) {
        std::unique_ptr<Batch> batch;
        ASSERT_EQ(engine->next(batch, 20000).ok(), true);
        if (!batch) break;
        seen += batch->indices.size();
      }
      EXPECT_EQ(seen, s.samples);
      EXPECT_LE(engine->stats().memory_peak, kBudget * 11 / 10)
          << static_cast<int>(packing) << is_far;
    }
}

// Decodes as many samples as it is allowed to.
class AllowedDecoder final : public Decoder {
 public:
  const TensorSpec& output() const override { return inner_.output(); }
  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    {
      MutexLock lock(mu_);
      while (allowed_ == 0) wakes_.wait(mu_);
      --allowed_;
      ++decoded_;
    }
    return inner_.run(inputs, context, out);
  }
  void allow(uint64_t samples) {
    MutexLock lock(mu_);
    allowed_ += samples;
    wakes_.notify_all();
  }
  uint64_t decoded() const {
    MutexLock lock(mu_);
    return decoded_;
  }

 private:
  const TestDecoder inner_;
  mutable Mutex mu_;
  mutable CondVar wakes_;
  mutable uint64_t allowed_ HEADRACE_GUARDED_BY(mu_) = 0;
  mutable uint64_t decoded_ HEADRACE_GUARDED_BY(mu_) = 0;
};

TEST(FarTest, while_the_consumer_pauses_the_batches_ahead_are_made_and_no_more) {
  constexpr uint64_t kBatch = 8, kAhead = 3, kBatches = 10;
  constexpr uint64_t kSamples = (kAhead + kBatches) * kBatch * 4;
  const auto decoder = std::make_shared<AllowedDecoder>();
  const auto source = std::make_shared<TestSource>(TestSource::fill(kSamples), kSamples);
  Engine engine({{source, 0, {0}, {decoder}}},
                {{ColumnSpec{"data", decoder->output(), Packing::kDense}}},
                {.compute_threads = 1, .io_threads = 2, .batches_ahead = kAhead});
  ASSERT_TRUE(engine.start(std::make_unique<TestFeed>(kSamples, kBatch)).ok());
  decoder->allow(kSamples);
  while (decoder->decoded() < kAhead * kBatch) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // what came too early would come now
  EXPECT_EQ(decoder->decoded(), kAhead * kBatch);
  std::unique_ptr<Batch> batch;
  for (uint64_t k = 0; k < kAhead; ++k)
    ASSERT_EQ(engine.next(batch, 20000).value(), Engine::Next::kBatch);
  engine.stop();
}

// Whatever the clock says, no batch waits for more work than its own.  One batch at a time: of two,
// a thread takes the one whose samples were read first.
TEST(FarTest, a_batch_is_there_as_soon_as_its_own_samples_are_decoded) {
  constexpr uint64_t kBatch = 8, kBatches = 10;
  constexpr uint64_t kSamples = kBatches * kBatch;
  const auto decoder = std::make_shared<AllowedDecoder>();
  const auto source = std::make_shared<TestSource>(TestSource::fill(kSamples), kSamples);
  Engine engine({{source, 0, {0}, {decoder}}},
                {{ColumnSpec{"data", decoder->output(), Packing::kDense}}},
                {.compute_threads = 1, .io_threads = 2, .batches_ahead = 1});
  // Where the test fails, nobody is left waiting.
  const std::shared_ptr<void> at_end(nullptr, [&](void*) { decoder->allow(kSamples); });
  ASSERT_TRUE(engine.start(std::make_unique<TestFeed>(kSamples, kBatch)).ok());
  std::unique_ptr<Batch> batch;
  for (uint64_t k = 0; k < kBatches; ++k) {
    decoder->allow(kBatch);
    ASSERT_EQ(engine.next(batch, 20000).value(), Engine::Next::kBatch);
    EXPECT_EQ(decoder->decoded(), (k + 1) * kBatch);
  }
}

// The k-th batch after a pause, at its best of some pauses: a busy machine may hold up one, a timer
// would hold up all.
TEST(FarTest, after_a_pause_batches_come_as_fast_as_they_are_made) {
  constexpr int kPauses = 8;
  constexpr size_t kBatches = 10;
  Scene s;
  s.samples = kPauses * kBatches * s.batch;
  s.decode_time = std::chrono::microseconds(500);  // a batch of 8: 4 ms on one thread
  s.options = {.compute_threads = 1, .io_threads = 2};
  s.store = TestSource::fill(s.samples);
  auto engine = make_engine(s);
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
  std::array<steady_clock::duration, kBatches> best;
  best.fill(steady_clock::duration::max());
  for (int pause = 0; pause < kPauses; ++pause) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (auto& wait : best) {
      const auto begin = steady_clock::now();
      std::unique_ptr<Batch> batch;
      ASSERT_EQ(engine->next(batch, 20000).value(), Engine::Next::kBatch);
      wait = std::min(wait, steady_clock::now() - begin);
    }
  }
  for (const auto& wait : best) EXPECT_LT(wait, std::chrono::milliseconds(12));
}

}  // namespace
}  // namespace headrace

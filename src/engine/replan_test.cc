// SPDX-License-Identifier: Apache-2.0
//
// A feed that changes its mind while the engine is far ahead: later steps are planned anew, those
// before stay as they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "engine/engine_fixture.h"
#include "storage/fault.h"
#include "storage/test_stores.h"

namespace headrace {
namespace {

using std::chrono::steady_clock;

// Sample (g * 7 + shift) mod samples, where the shift may change at a step.
class ShiftFeed final : public Feed {
 public:
  ShiftFeed(uint64_t samples, uint64_t batch) : samples_(samples), batch_(batch) {}
  Result<bool> next(FeedStep& out) override {
    if (g_ >= samples_) return false;
    for (uint64_t i = 0; i < batch_ && g_ < samples_; ++i, ++g_)
      out.tasks.push_back({0, (g_ * 7 + shift_at(g_)) % samples_, 0, g_, true});
    out.after = {0, g_, g_ == samples_};
    return true;
  }
  bool substitute(const Task& task, uint64_t attempt, Task& out) override {
    out = task;
    out.sample = (task.sample + attempt) % samples_;
    return attempt < samples_;
  }
  void change(uint64_t step, uint64_t shift) {
    from_ = step * batch_;
    next_shift_ = shift;
    g_ = std::min(g_, from_);
  }

 private:
  // One change at a time: the next may come once this one's step was taken.
  uint64_t shift_at(uint64_t g) {
    if (g == from_) shift_ = next_shift_;
    return shift_;
  }
  const uint64_t samples_, batch_;
  uint64_t g_ = 0, shift_ = 0;
  uint64_t from_ = 0, next_shift_ = 0;
};

Status shift_from(Engine& engine, uint64_t step, uint64_t shift) {
  return engine.replan(step,
                       [&](Feed& feed) { static_cast<ShiftFeed&>(feed).change(step, shift); });
}

std::vector<int64_t> take(Engine& engine, size_t batches) {
  std::vector<int64_t> out;
  for (size_t k = 0; k < batches; ++k) {
    std::unique_ptr<Batch> batch;
    EXPECT_EQ(engine.next(batch, 20000).value(), Engine::Next::kBatch);
    if (!batch) break;
    out.insert(out.end(), batch->indices.begin(), batch->indices.end());
  }
  return out;
}

std::vector<int64_t> shifted(const Scene& s, uint64_t from_step, uint64_t shift) {
  std::vector<int64_t> out;
  for (uint64_t g = 0; g < s.samples; ++g)
    out.push_back(
        static_cast<int64_t>((g * 7 + (g < from_step * s.batch ? 0 : shift)) % s.samples));
  return out;
}

ReadPolicy far_policy(bool runs) {
  return {.is_far = true,
          .in_caller = false,
          .runs = runs,
          .gap_bytes = 64 << 10,
          .most_bytes = 8 << 20};
}

Scene far_scene(uint32_t encoding, bool runs) {
  Scene s;
  s.samples = 2000;
  s.encoding = encoding;
  s.store = std::make_shared<LatencyStore>(TestSource::fill(s.samples, encoding == 0 ? 0 : 1),
                                           LatencyOptions{.latency = std::chrono::milliseconds(1)});
  s.policy = far_policy(runs);
  s.options = {.compute_threads = 2, .io_threads = 2, .ranges_first_bytes = 100'000};
  return s;
}

void wait_until_all_is_planned(const Engine& engine, const Scene& s) {
  while (engine.stats().resolve.items < s.samples) std::this_thread::yield();
}

TEST(ReplanTest, later_steps_are_planned_anew_and_those_before_are_kept) {
  for (const uint32_t encoding : {0u, 1u})
    for (const bool runs : {false, true})
      for (const uint64_t from : {uint64_t{3}, uint64_t{4}, uint64_t{100}, uint64_t{249}}) {
        const Scene s = far_scene(encoding, runs);
        auto engine = make_engine(s);
        ASSERT_TRUE(engine->start(std::make_unique<ShiftFeed>(s.samples, s.batch)).ok());
        std::vector<int64_t> seen = take(*engine, 3);
        wait_until_all_is_planned(*engine, s);
        ASSERT_TRUE(shift_from(*engine, from, 11).ok());
        const std::vector<int64_t> rest = drain(*engine).value();
        seen.insert(seen.end(), rest.begin(), rest.end());
        EXPECT_EQ(seen, shifted(s, from, 11)) << encoding << runs << ' ' << from;
      }
}

TEST(ReplanTest, near_storage_too) {
  for (const bool late : {false, true})
    for (const uint64_t from : {uint64_t{3}, uint64_t{5}, uint64_t{12}}) {
      Scene s;
      s.policy.late = late;
      s.options = {.compute_threads = 2, .io_threads = 2, .batches_ahead = 64};
      auto engine = make_engine(s);
      ASSERT_TRUE(engine->start(std::make_unique<ShiftFeed>(s.samples, s.batch)).ok());
      std::vector<int64_t> seen = take(*engine, 3);
      wait_until_all_is_planned(*engine, s);
      ASSERT_TRUE(shift_from(*engine, from, 11).ok());
      const std::vector<int64_t> rest = drain(*engine).value();
      seen.insert(seen.end(), rest.begin(), rest.end());
      EXPECT_EQ(seen, shifted(s, from, 11)) << late << ' ' << from;
    }
}

TEST(ReplanTest, a_step_that_was_delivered_is_refused_and_nothing_changes) {
  const Scene s = far_scene(0, false);
  auto engine = make_engine(s);
  ASSERT_TRUE(engine->start(std::make_unique<ShiftFeed>(s.samples, s.batch)).ok());
  std::vector<int64_t> seen = take(*engine, 3);
  EXPECT_EQ(shift_from(*engine, 2, 11).code(), Code::kInvalidArgument);
  const std::vector<int64_t> rest = drain(*engine).value();
  seen.insert(seen.end(), rest.begin(), rest.end());
  EXPECT_EQ(seen, expected(s.samples));
}

TEST(ReplanTest, what_was_read_for_steps_before_is_not_read_again) {
  Scene s = far_scene(0, false);
  const auto counted = std::make_shared<FaultStore>(TestSource::fill(s.samples));
  s.store = counted;
  s.policy.most_bytes = 0;  // nothing merges: a read each
  auto engine = make_engine(s);
  ASSERT_TRUE(engine->start(std::make_unique<ShiftFeed>(s.samples, s.batch)).ok());
  std::vector<int64_t> seen = take(*engine, 1);
  while (counted->reads() < s.samples) std::this_thread::yield();
  ASSERT_TRUE(shift_from(*engine, 200, 11).ok());
  const std::vector<int64_t> rest = drain(*engine).value();
  seen.insert(seen.end(), rest.begin(), rest.end());
  EXPECT_EQ(seen, shifted(s, 200, 11));
  EXPECT_EQ(counted->reads(), s.samples + 50 * s.batch);
}

TEST(ReplanTest, any_number_of_times_under_a_small_budget_with_bad_samples) {
  std::mt19937 random(3);
  for (const uint64_t budget : {uint64_t{1}, uint64_t{50'000}, uint64_t{1} << 30})
    for (const bool runs : {false, true}) {
      Scene s = far_scene(0, runs);
      s.options.memory_budget_bytes = budget;
      s.bad = {7, 130};
      s.options.bad_samples = {.replace = true};
      auto engine = make_engine(s);
      ASSERT_TRUE(engine->start(std::make_unique<ShiftFeed>(s.samples, s.batch)).ok());
      uint64_t shift = 0;
      uint64_t next_shift = 0;
      uint64_t from = 0;
      for (uint64_t step = 0; step < s.samples / s.batch; ++step) {
        if (step == from) shift = next_shift;
        const std::vector<int64_t> got = take(*engine, 1);
        ASSERT_EQ(got.size(), s.batch);
        for (uint64_t i = 0; i < s.batch; ++i) {
          auto want = static_cast<int64_t>(((step * s.batch + i) * 7 + shift) % s.samples);
          while (s.bad.contains(static_cast<int>(want % 251)))
            want = (want + 1) % static_cast<int64_t>(s.samples);
          ASSERT_EQ(got[i], want) << step;
        }
        if (step >= from && random() % 3 == 0) {
          from = step + 1 + random() % 10;
          next_shift = random() % s.samples;
          ASSERT_TRUE(shift_from(*engine, from, next_shift).ok());
        }
      }
      engine->stop();
      EXPECT_EQ(engine->stats().reads_under_way, 0u);
    }
}

TEST(ReplanTest, does_not_wait_for_reads_that_nobody_answers) {
  Scene s = far_scene(0, false);
  s.samples = 4000;
  s.store = std::make_shared<SilentStore>(TestSource::fill(s.samples));
  s.policy.most_bytes = 0;
  auto engine = make_engine(s);
  auto best = steady_clock::duration::max();  // a busy machine may hold up a round
  for (int round = 0; round < 8; ++round) {
    ASSERT_TRUE(engine->start(std::make_unique<ShiftFeed>(s.samples, s.batch)).ok());
    while (engine->stats().reads_under_way < 1000) std::this_thread::yield();
    const auto begin = steady_clock::now();
    ASSERT_TRUE(shift_from(*engine, 5, 11).ok());
    best = std::min(best, steady_clock::now() - begin);
    engine->stop();
    EXPECT_EQ(engine->stats().memory_used, 0u);
  }
  EXPECT_LT(best, std::chrono::milliseconds(100));
}

}  // namespace
}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <numeric>
#include <set>

#include "base/mutex.h"
#include "engine/block_samples.h"
#include "engine/engine_fixture.h"
#include "engine/read_now.h"
#include "storage/fault.h"
#include "storage/memory.h"

namespace headrace {
namespace {

// Reads finish later, on a thread of the store's own, newest first: as bad as a remote store gets.
class LaterStore final : public StoreWrapper {
 public:
  explicit LaterStore(std::shared_ptr<const Store> inner)
      : StoreWrapper(std::move(inner)), thread_([this] { run(); }) {}
  ~LaterStore() override {
    {
      MutexLock lock(mu_);
      closing_ = true;
      wakes_.notify_all();
    }
    thread_.join();
  }
  void read(std::span<ReadRequest> requests) const override {
    MutexLock lock(mu_);
    for (ReadRequest& r : requests) todo_.push_back(std::move(r));
    wakes_.notify_all();
  }

 private:
  void run() {
    while (true) {
      std::deque<ReadRequest> now;
      {
        MutexLock lock(mu_);
        while (!closing_ && todo_.empty()) wakes_.wait(mu_);
        if (todo_.empty()) return;
        now.swap(todo_);
      }
      for (auto it = now.rbegin(); it != now.rend(); ++it) inner().read(std::span(&*it, 1));
    }
  }
  mutable Mutex mu_;
  mutable CondVar wakes_;
  mutable std::deque<ReadRequest> todo_ HEADRACE_GUARDED_BY(mu_);
  bool closing_ HEADRACE_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// Of some reads the bytes are in memory already: as a page cache has them.
class PartlyResident final : public StoreWrapper {
 public:
  PartlyResident(std::shared_ptr<const Store> inner, uint64_t one_in)
      : StoreWrapper(std::move(inner)), one_in_(one_in) {}
  void read(std::span<ReadRequest> requests) const override {
    waited_ += requests.size();
    inner().read(requests);
  }
  bool read_if_resident(ReadRequest& request) const override {
    if (tried_++ % one_in_ != 0) return false;
    return inner().read_at(request.path, request.offset, request.length, request.into).ok();
  }
  uint64_t waited() const { return waited_; }

 private:
  const uint64_t one_in_;
  mutable std::atomic<uint64_t> tried_{0}, waited_{0};
};

TEST(EngineTest, DeliversInPlanOrderForAnyThreads) {
  for (const int threads : {1, 2, 7})
    for (const int io : {1, 3}) {
      Scene s;
      s.options = {.compute_threads = threads, .io_threads = io};
      EXPECT_EQ(run_once(s).value(), expected(100));
    }
}

TEST(EngineTest, StoresThatCompleteLaterAndOutOfOrderGiveTheSame) {
  Scene s;
  s.store = std::make_shared<LaterStore>(TestSource::fill(100));
  s.options = {.compute_threads = 2, .io_threads = 2};
  EXPECT_EQ(run_once(s).value(), expected(100));
}

TEST(EngineTest, WhatIsThereIsReadLateAndTheRestWaitedFor) {
  for (const uint64_t one_in : {uint64_t{1}, uint64_t{2}, uint64_t{7}}) {
    for (const int threads : {1, 3}) {
      Scene s;
      s.samples = 5000;
      const auto store = std::make_shared<PartlyResident>(TestSource::fill(s.samples), one_in);
      s.store = store;
      s.options = {.compute_threads = threads, .io_threads = 2};
      s.policy.late = true;
      EXPECT_EQ(run_once(s).value(), expected(s.samples));
      EXPECT_EQ(store->waited() == 0, one_in == 1);
    }
  }
}

TEST(EngineTest, UnitsThatOpenAsAWholeAreSharedAndOpened) {
  for (const bool later : {false, true}) {
    Scene s;
    auto counted = std::make_shared<FaultStore>(TestSource::fill(100, 1));
    s.store = counted;
    if (later) s.store = std::make_shared<LaterStore>(counted);
    s.encoding = 1;
    s.options = {.compute_threads = 3, .io_threads = 3};
    EXPECT_EQ(run_once(s).value(), expected(100));
    EXPECT_EQ(counted->reads(), 10u);  // ten files, each once
  }
}

TEST(EngineTest, TablesOfRowsThatNobodyStoresAreOpenedOnceAndCountedAsTheyTurnOut) {
  for (const uint64_t budget : {uint64_t{1} << 30, uint64_t{1}}) {
    const auto source = std::make_shared<TestSource>(TestSource::fill(100), 100, kRows);
    const auto decoder = std::make_shared<TestDecoder>();
    Engine engine({{source, 0, {0}, {decoder}}},
                  {{ColumnSpec{"data", decoder->output(), Packing::kDense}}},
                  {.compute_threads = 3, .io_threads = 3, .memory_budget_bytes = budget});
    ASSERT_TRUE(engine.start(std::make_unique<TestFeed>(100, 8)).ok());
    EXPECT_EQ(drain(engine).value(), expected(100));
    if (budget == 1) {
      EXPECT_GE(source->opened(), 10);  // too little memory: again and again, but it gets through
      continue;
    }
    EXPECT_EQ(source->opened(), 10);
    EXPECT_GE(engine.stats().memory_used, 100 * kSample);  // the tables are kept, and counted whole
  }
}

TEST(EngineTest, RunsAreReadOnceAndKept) {
  Scene s;
  auto counted = std::make_shared<FaultStore>(TestSource::fill(100));
  s.store = counted;
  s.options = {.compute_threads = 2, .io_threads = 2, .ranges_first_bytes = 0};
  s.policy.runs = true;
  EXPECT_EQ(run_once(s).value(), expected(100));
  EXPECT_EQ(counted->reads(), 10u);
}

TEST(EngineTest, PoolsLargerThanTheBudgetAreReadAgainAndNeverDeadlock) {
  for (const uint64_t budget : {1ull, 9000ull, 25000ull}) {
    Scene s;
    auto counted = std::make_shared<FaultStore>(TestSource::fill(1000));
    s.store = counted;
    s.samples = 1000;
    s.options = {.compute_threads = 2,
                 .io_threads = 3,
                 .memory_budget_bytes = budget,
                 .ranges_first_bytes = 0};
    s.policy.runs = true;
    EXPECT_EQ(run_once(s).value(), expected(1000));
    EXPECT_GT(counted->reads(), 100u);
  }
}

TEST(EngineTest, BatchLargerThanTheBudgetStillComes) {
  Scene s;
  s.batch = 100;
  s.options = {.compute_threads = 2, .memory_budget_bytes = 10, .read_ahead_bytes = 1};
  EXPECT_EQ(run_once(s).value(), expected(100));
}

TEST(EngineTest, ReadAheadStaysWithinTheBudget) {
  Scene s;
  s.store = TestSource::fill(5000);
  s.samples = 5000;
  s.options = {.compute_threads = 2,
               .memory_budget_bytes = 100000,
               .read_ahead_bytes = 20000,
               .batches_ahead = 50};
  auto engine = make_engine(s);
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
  EXPECT_EQ(drain(*engine).value().size(), 5000u);
  EXPECT_LE(engine->stats().memory_peak, 100000u);
  EXPECT_GT(engine->stats().memory_peak, 0u);
}

TEST(EngineTest, StorageErrorReachesTheConsumerInOrder) {
  Scene s;
  auto faulty = std::make_shared<FaultStore>(TestSource::fill(100));
  faulty->add({.path = "f9", .fail_read = 1, .and_all_later = true});
  s.store = faulty;
  s.options = {.compute_threads = 2,
               .bad_samples = {.replace = true}};  // never replaces storage errors
  const auto r = run_once(s);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().code(), Code::kUnavailable);
  EXPECT_NE(r.status().text().find("f9"), std::string::npos) << r.status().text();
}

TEST(EngineTest, BadDataRaisesWithFileOffsetSampleAndKey) {
  Scene s;
  s.bad = {42};
  const auto r = run_once(s);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().code(), Code::kCorrupt);
  EXPECT_EQ(r.status().place().file, "f4");
  EXPECT_EQ(r.status().place().offset, 2003);
  EXPECT_EQ(r.status().place().sample, 42);
  EXPECT_EQ(r.status().place().key, "key42");
}

TEST(EngineTest, BadSamplesAreReplacedTheSameWayForAnyThreads) {
  std::vector<int64_t> want = expected(100);
  for (int64_t& i : want)
    while (i == 42 || i == 43 || i == 7) i = (i + 1) % 100;
  for (const int threads : {1, 2, 7}) {
    Scene s;
    s.bad = {7, 42, 43};
    s.options = {.compute_threads = threads, .bad_samples = {.replace = true}};
    auto engine = make_engine(s);
    ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
    EXPECT_EQ(drain(*engine).value(), want);
    EXPECT_EQ(engine->quarantine().size(), 3u);  // 43 once, though it was tried for 42 too
  }
}

TEST(EngineTest, ReplacementNeverStarvesBehindParkedReads) {
  Scene s;
  for (int i = 0; i < 60; ++i) s.bad.insert(i);
  s.options = {.compute_threads = 1,
               .io_threads = 1,
               .memory_budget_bytes = 8 * kSample,
               .read_ahead_bytes = kSample,
               .batches_ahead = 9,
               .bad_samples = {.replace = true, .budget = 100000}};
  EXPECT_TRUE(run_once(s).ok());
}

TEST(EngineTest, BudgetOfBadSamplesEndsTheEpoch) {
  Scene s;
  s.bad = {1, 2, 3};
  s.options.bad_samples = {.replace = true, .budget = 2};
  const auto r = run_once(s);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().text().find("more than 2 bad samples"), std::string::npos)
      << r.status().text();
}

TEST(EngineTest, NothingGoodLeftIsAnErrorAndNoHang) {
  Scene s;
  s.samples = 20;
  for (int i = 0; i < 20; ++i) s.bad.insert(i);
  s.options.bad_samples = {.replace = true, .budget = 100000};
  const auto r = run_once(s);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().text().find("no good sample is left"), std::string::npos);
}

// Two samples in two blocks whose runs begin with the same byte: a value that both share.
class SharedStart final : public Source {
 public:
  SharedStart() { store_->put("f", "0123456789abcdefghij"); }
  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return 2; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return {}; }
  Status needs(const SampleAsk& ask, Request& out) const override {
    out.units.push_back({0, 0, 5 + 10 * ask.sample, 5, 5});
    out.pieces.push_back({0, 0, 5});
    out.first_piece.push_back(1);
    return {};
  }
  bool run_of(uint64_t sample, Unit& run) const override {
    run = {0, 0, 0, 10 + 10 * sample, 10 + 10 * sample};
    return true;
  }
  const Store& store() const override { return *store_; }
  std::string file_path(uint32_t) const override { return "f"; }
  std::string key(uint64_t) const override { return {}; }

 private:
  const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  const Schema schema_ = {{.name = "x"}};
  const Blocks blocks_{{1, 1}, 20};
};

TEST(UnitCacheTest, RunsThatBeginAtOnePlaceAreTwo) {
  const SharedStart source;
  UnitCache units;
  Gather gather;
  const std::vector<uint32_t> fields{0};
  const ReadPolicy policy{.runs = true};
  for (const uint64_t sample : {uint64_t{0}, uint64_t{1}})
    ASSERT_TRUE(gather.add(source, {.sample = sample, .fields = fields}, policy).ok());
  gather.plan_reads({}, &units);
  read_now(gather, units);
  EXPECT_EQ(as_text(gather.value(0, 0).value()), "56789");
  EXPECT_EQ(as_text(gather.value(1, 0).value()), "fghij");
}

// A run of which the next pool takes the rest stays; one whose values were all taken goes first,
// although it has been idle for less time.
TEST(UnitCacheTest, RunsThatAreUsedUpGoFirst) {
  const TestSource source(TestSource::fill(2), 2);
  UnitCache units;
  const auto make = [&](uint64_t offset, uint64_t taken) {  // of 1024 samples
    const UnitPin pin =
        units.pin(source, {.offset = offset, .stored_bytes = 1 << 20, .decoded_bytes = 1 << 20});
    bool must_read = false;
    units.when_ready(pin.unit(), must_read, [] {});
    EXPECT_TRUE(must_read);
    pin->stored = units.memory(1 << 20);
    pin->stored->resize(1 << 20);
    units.finish(pin.unit());
    units.take(pin.unit(), {.samples = taken, .bytes = taken << 10, .of_samples = 1024});
  };
  make(0, 512);
  make(1 << 20, 1024);
  make(1 << 21, 1023);
  const auto is_there = [&](uint64_t offset) {
    const UnitPin pin =
        units.pin(source, {.offset = offset, .stored_bytes = 1 << 20, .decoded_bytes = 1 << 20});
    return !units.is_absent(pin.unit());
  };
  EXPECT_EQ(units.evict(1), 1u << 20);
  EXPECT_TRUE(is_there(0));
  EXPECT_FALSE(is_there(1 << 20));
  EXPECT_TRUE(is_there(1 << 21));
}

TEST(UnitCacheTest, ARunOfWhichEverySampleWasTakenIsDroppedWhereNoEpochFindsItAgain) {
  constexpr uint64_t kFiles = 3;
  const auto source =
      std::make_shared<TestSource>(TestSource::fill(kFiles * kPerFile), kFiles * kPerFile);
  const BlockSamples blocks(source->blocks());
  EXPECT_EQ(blocks.of(kPerFile).count, kPerFile);
  EXPECT_EQ(blocks.of(kFiles * kPerFile).count, 0u);
  const std::vector<uint32_t> fields{0};
  ReadPolicy policy{.runs = true};
  policy.block_samples = std::make_shared<BlockSamples>(source->blocks());
  for (const bool drops : {false, true}) {
    UnitCache units(nullptr, nullptr, drops);
    const auto read = [&](uint64_t begin, uint64_t end, bool by_runs) {
      Gather gather;
      for (uint64_t s = begin; s < end; ++s)
        EXPECT_TRUE(gather.add(*source, {.sample = s, .fields = fields}, policy).ok());
      gather.plan_reads({.runs = by_runs}, &units);
      read_now(gather, units);
      for (uint64_t s = begin; s < end; ++s)
        EXPECT_EQ(gather.value(s - begin, 0).value()[0], std::byte(s % 251));
    };
    read(0, 3, false);  // the start of an epoch: by ranges
    EXPECT_EQ(units.bytes(), 0u);
    read(3, kPerFile - 1, true);
    EXPECT_EQ(units.bytes(), kPerFile * kSample) << "one sample is left";
    read(kPerFile - 1, kPerFile + 1, true);
    EXPECT_EQ(units.bytes(), (drops ? 1 : 2) * kPerFile * kSample);
    read(kPerFile + 1, 3 * kPerFile, true);
    EXPECT_EQ(units.bytes(), (drops ? 0 : 3) * kPerFile * kSample);
    EXPECT_EQ(units.reread(), 0u);
  }
}

// What is left of a run that was dropped too early is read by itself, once; then the run is a run
// again.
TEST(UnitCacheTest, TheRestOfADroppedRunIsReadByRanges) {
  constexpr uint64_t kHalf = kPerFile / 2;
  const TestSource source(TestSource::fill(kPerFile), kPerFile);
  UnitCache units;
  const std::vector<uint32_t> fields{0};
  const ReadPolicy policy{.runs = true};
  const auto read = [&](uint64_t begin, uint64_t end) {
    Gather gather;
    for (uint64_t s = begin; s < end; ++s)
      EXPECT_TRUE(gather.add(source, {.sample = s, .fields = fields}, policy).ok());
    gather.plan_reads({}, &units);
    const size_t runs = gather.shared_units().size();
    read_now(gather, units);
    for (uint64_t s = begin; s < end; ++s)
      EXPECT_EQ(gather.value(s - begin, 0).value()[0], std::byte(s % 251));
    return runs;
  };
  EXPECT_EQ(read(0, kHalf), 1u);
  EXPECT_EQ(units.evict(1), kPerFile * kSample);
  EXPECT_EQ(read(kHalf, kPerFile), 0u);
  EXPECT_EQ(read(0, kPerFile), 1u);
}

TEST(EngineTest, EarlyExitAndRestartLoseNothing) {
  Scene s;
  s.store = std::make_shared<LaterStore>(TestSource::fill(100));
  s.options = {.compute_threads = 2, .io_threads = 2};
  auto engine = make_engine(s);
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
    for (int k = 0; k < round % 5; ++k) {
      std::unique_ptr<Batch> batch;
      ASSERT_EQ(engine->next(batch, 20000).value(), Engine::Next::kBatch);
    }
  }
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
  EXPECT_EQ(drain(*engine).value(), expected(100));
}

TEST(EngineTest, BatchesTheUserKeepsStayValid) {
  Scene s;
  auto engine = make_engine(s);
  std::vector<std::unique_ptr<Batch>> kept;
  for (int epoch = 0; epoch < 3; ++epoch) {
    ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
    std::unique_ptr<Batch> batch;
    while (engine->next(batch, 20000).value() == Engine::Next::kBatch)
      kept.push_back(std::move(batch));
  }
  engine.reset();
  for (const auto& batch : kept)
    for (size_t i = 0; i < batch->indices.size(); ++i)
      EXPECT_EQ(std::to_integer<int>(batch->columns[0].values->bytes()[i * kSample]),
                batch->indices[i] % 251);
}

TEST(EngineTest, ForkedChildGetsAnErrorAndExits) {
  Scene s;
  auto engine = make_engine(s);
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
  const pid_t child = fork();
  if (child == 0) {
    std::unique_ptr<Batch> batch;
    const auto r = engine->next(batch, 20000);
    const bool refused = !r.ok() && r.status().code() == Code::kInvalidArgument;
    engine.reset();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(drain(*engine).value(), expected(100));
}

// Has memory for so many columns.
class SmallArena final : public Arena {
 public:
  explicit SmallArena(int allocations) : left_(allocations) {}
  MemoryBlock allocate(size_t bytes, size_t alignment) override {
    if (left_.fetch_sub(1) <= 0) throw std::bad_alloc();
    return allocate_heap(bytes, alignment);
  }
  void release(MemoryBlock memory) override { release_heap(memory); }
  ArenaKind kind() const override { return ArenaKind::kHeap; }

 private:
  std::atomic<int> left_;
};

TEST(EngineTest, ColumnsWithoutMemoryAreAnErrorOfTheirStep) {
  for (int columns = 0; columns < 4; ++columns)
    for (int round = 0; round < 5; ++round) {
      Scene s;
      s.options = {.compute_threads = 3, .io_threads = 2};
      s.options.column_arena = std::make_shared<SmallArena>(columns);
      auto engine = make_engine(s);
      ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
      std::vector<std::unique_ptr<Batch>> kept;  // their memory does not come back
      Result<Engine::Next> next = Engine::Next::kBatch;
      while (next.ok() && next.value() == Engine::Next::kBatch)
        next = engine->next(kept.emplace_back(), 20000);
      EXPECT_EQ(next.status().code(), Code::kExhausted) << columns;
      EXPECT_EQ(kept.size(), static_cast<size_t>(columns) + 1);
    }
}

TEST(EngineTest, CountsWhatItDid) {
  Scene s;
  auto engine = make_engine(s);
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)).ok());
  ASSERT_TRUE(drain(*engine).ok());
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.decode.items, 100u);
  EXPECT_EQ(stats.decode.bytes, 100 * kSample);
  EXPECT_EQ(stats.deliver.items, 100u);
  EXPECT_GE(stats.read.bytes, 100 * kSample);
  EXPECT_GT(stats.decode.busy_ns, 0u);
}

}  // namespace
}  // namespace headrace

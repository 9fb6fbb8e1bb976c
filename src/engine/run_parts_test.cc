// SPDX-License-Identifier: Apache-2.0
//
// Runs that are read in parts: what the parts are, who gets their memory, and that batches hold the
// same bytes as when samples are read by themselves.
#include "engine/run_parts.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "base/sanitized.h"
#include "codec/text.h"
#include "engine/block_samples.h"
#include "engine/engine.h"
#include "engine/gather.h"
#include "engine/read_now.h"
#include "storage/fault.h"
#include "storage/memory.h"
#include "storage/test_stores.h"

namespace headrace {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kHead = 512;  // before every value, as in a tar
constexpr std::array<uint64_t, 10> kSizes{5000, 20'000, 100,    0,    4096,
                                          300,  200,    60'000, 8000, 30'000};
constexpr uint64_t kLabel = 8;  // behind it

std::byte byte_at(uint64_t sample, uint64_t at) {
  return static_cast<std::byte>((sample * 31 + at * 7 + at / 251) % 256);
}

// Files of ten samples, each with a value of one of these sizes and a label.
class ValuesSource final : public Source {
 public:
  ValuesSource(std::shared_ptr<const Store> store, uint64_t samples)
      : store_(std::move(store)), samples_(samples) {
    for (uint64_t i = 0; i < kSizes.size(); ++i)
      begins_[i + 1] = begins_[i] + kHead + kSizes[i] + kLabel;
    blocks_.samples.assign(samples / kSizes.size(), kSizes.size());
    blocks_.bytes = file_bytes() * blocks_.samples.size();
  }
  static std::shared_ptr<MemoryStore> fill(uint64_t samples) {
    auto store = std::make_shared<MemoryStore>();
    for (uint64_t first = 0; first < samples; first += kSizes.size()) {
      std::vector<std::byte> bytes;
      for (uint64_t s = first; s < first + kSizes.size(); ++s) {
        bytes.insert(bytes.end(), kHead, std::byte{0xff});
        for (uint64_t at = 0; at < size_of(s); ++at) bytes.push_back(byte_at(s, at));
        bytes.insert(bytes.end(), kLabel, static_cast<std::byte>(s));
      }
      store->put("f" + std::to_string(first / kSizes.size()), std::move(bytes));
    }
    return store;
  }
  static uint64_t size_of(uint64_t sample) { return kSizes[sample % kSizes.size()]; }
  uint64_t file_bytes() const { return begins_.back(); }

  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return samples_; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return {}; }
  Status needs(const SampleAsk& ask, Request& out) const override {
    const uint64_t in_file = ask.sample % kSizes.size();
    const auto file = static_cast<uint32_t>(ask.sample / kSizes.size());
    for (const uint32_t field : ask.fields) {
      const uint64_t bytes = field == 0 ? kSizes[in_file] : kLabel;
      const uint64_t at = begins_[in_file] + kHead + (field == 0 ? 0 : kSizes[in_file]);
      out.units.push_back({file, 0, at, bytes, bytes});
      out.pieces.push_back({static_cast<uint32_t>(out.units.size() - 1), 0, bytes});
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    return {};
  }
  bool run_of(uint64_t sample, Unit& run) const override {
    run = {static_cast<uint32_t>(sample / kSizes.size()), 0, 0, file_bytes(), file_bytes()};
    return true;
  }
  const Store& store() const override { return *store_; }
  std::string file_path(uint32_t file) const override { return "f" + std::to_string(file); }
  std::string key(uint64_t sample) const override { return std::to_string(sample); }

 private:
  const std::shared_ptr<const Store> store_;
  const uint64_t samples_;
  const Schema schema_{{"data", Kind::kBytes, Storage::kExtent},
                       {"label", Kind::kBytes, Storage::kExtent}};
  std::array<uint64_t, kSizes.size() + 1> begins_{};
  Blocks blocks_;
};

bool is_right(uint64_t sample, Bytes value) {
  if (value.size() != ValuesSource::size_of(sample)) return false;
  for (uint64_t at = 0; at < value.size(); ++at)
    if (value[at] != byte_at(sample, at)) return false;
  return true;
}

ReadPolicy runs_in_parts(const Source& source) {
  ReadPolicy policy{.is_far = true, .in_caller = false, .runs = true};
  policy.block_samples = std::make_shared<BlockSamples>(source.blocks());
  policy.least_part_bytes = 1;
  return policy;
}

const std::vector<uint32_t> kData{0}, kLabels{1}, kBoth{0, 1}, kTwice{0, 0};

// -- which parts ---------------------------------------------------------------------------------

std::vector<RunPart> parts_of(const ValuesSource& source, const std::vector<uint32_t>& fields,
                              const ReadPolicy& policy) {
  Unit run;
  EXPECT_TRUE(source.run_of(13, run));
  return parts_of_run(source, {.sample = 13, .fields = fields}, policy, run);
}

TEST(RunPartsTest, large_values_lie_alone_and_small_neighbours_together) {
  const ValuesSource source(ValuesSource::fill(30), 30);
  const std::vector<RunPart> parts = parts_of(source, kData, runs_in_parts(source));
  std::vector<uint64_t> lengths;
  uint64_t end = 0;
  for (const RunPart& part : parts) {
    EXPECT_GE(part.begin, end) << "apart, and in order";
    end = part.begin + part.length;
    lengths.push_back(part.length);
  }
  EXPECT_LE(end, source.file_bytes());
  // 100 bytes, an empty value, then one of 4096 that is large; 300 and 200 are neighbours.
  EXPECT_EQ(lengths, (std::vector<uint64_t>{5000, 20'000, 100, 4096, 300 + kLabel + kHead + 200,
                                            60'000, 8000, 30'000}));
  EXPECT_EQ(parts[4].uses, 2u);
}

TEST(RunPartsTest, a_value_that_two_fields_want_is_one_part_of_two_uses) {
  const ValuesSource source(ValuesSource::fill(30), 30);
  for (const RunPart& part : parts_of(source, kTwice, runs_in_parts(source)))
    EXPECT_EQ(part.uses % 2, 0u) << part.begin;
}

TEST(RunPartsTest, requests_take_neighbours_up_to_so_many_bytes) {
  const ValuesSource source(ValuesSource::fill(30), 30);
  const std::vector<RunPart> parts = parts_of(source, kData, runs_in_parts(source));
  for (const uint64_t most : {uint64_t{0}, uint64_t{1}, uint64_t{30'000}, uint64_t{50'000},
                              uint64_t{100'000}, uint64_t{1} << 30}) {
    SCOPED_TRACE(most);
    size_t next = 0;
    const std::vector<PartsOfRead> reads = reads_of_parts(parts, most);
    for (const PartsOfRead& read : reads) {
      ASSERT_EQ(read.first, next);
      ASSERT_GT(read.count, 0u);
      next += read.count;
      const uint64_t bytes =
          parts[next - 1].begin + parts[next - 1].length - parts[read.first].begin;
      EXPECT_TRUE(bytes <= most || read.count == 1) << bytes;
    }
    EXPECT_EQ(next, parts.size());
  }
  EXPECT_EQ(reads_of_parts(parts, 1).size(), parts.size());
  EXPECT_EQ(reads_of_parts(parts, 50'000).size(), 3u) << "the one of 60,000 is alone";
  EXPECT_EQ(reads_of_parts(parts, uint64_t{1} << 30).size(), 1u);
  EXPECT_EQ(reads_of_parts({}, 1000).size(), 1u) << "read as one";
}

TEST(RunPartsTest, a_run_of_small_values_has_none) {
  const ValuesSource source(ValuesSource::fill(30), 30);
  ReadPolicy policy = runs_in_parts(source);
  policy.least_part_bytes = source.file_bytes();
  EXPECT_TRUE(parts_of(source, kData, policy).empty());
  policy = runs_in_parts(source);
  policy.block_samples = nullptr;  // nobody knows which samples it has
  EXPECT_TRUE(parts_of(source, kData, policy).empty());
}

// -- who gets their memory -----------------------------------------------------------------------

class HandingOver : public ::testing::Test {
 protected:
  // Samples of one chunk.
  void resolve(Gather& gather, std::initializer_list<uint64_t> samples,
               const std::vector<uint32_t>& fields = kData) {
    for (const uint64_t sample : samples)
      ASSERT_TRUE(gather.add(source_, {.sample = sample, .fields = fields}, policy_).ok());
    gather.plan_reads({.pool = pool_.get()}, &units_);
  }
  Budget budget_{uint64_t{1} << 30};
  const std::shared_ptr<BufferPool> pool_ = BufferPool::make(1 << 20);
  const ValuesSource source_{ValuesSource::fill(30), 30};
  const ReadPolicy policy_ = runs_in_parts(source_);
  UnitCache units_{&budget_, pool_, true};
};

TEST_F(HandingOver, a_value_goes_with_its_memory_and_what_it_counted) {
  Gather gather;
  resolve(gather, {0, 1, 2, 3});
  EXPECT_EQ(gather.shared_units().size(), 1u);
  read_now(gather, units_);
  const uint64_t before = units_.bytes();
  EXPECT_EQ(budget_.used(), before);
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}}) {
    const SharedBuffer whole = gather.take(i, 0);
    ASSERT_NE(whole, nullptr) << i;
    EXPECT_TRUE(is_right(i, whole->bytes()));
    EXPECT_EQ(gather.take(i, 0), nullptr) << "twice";
    EXPECT_FALSE(gather.value(i, 0).ok()) << "it is gone";
  }
  EXPECT_EQ(gather.take(3, 0), nullptr) << "of no bytes";
  EXPECT_EQ(gather.value(3, 0).value().size(), 0u);
  EXPECT_EQ(units_.bytes(), before - 25'100);
  EXPECT_EQ(budget_.used(), units_.bytes());
}

TEST_F(HandingOver, who_wants_it_again_reads_it_by_itself) {
  Gather first;
  resolve(first, {1});
  read_now(first, units_);
  ASSERT_NE(first.take(0, 0), nullptr);
  Gather second;
  resolve(second, {1, 7});
  EXPECT_EQ(second.ranges().size(), 1u);
  EXPECT_EQ(second.shared_units().size(), 1u) << "the other value is still there";
  read_now(second, units_);
  for (const size_t i : {size_t{0}, size_t{1}})
    EXPECT_TRUE(is_right(i == 0 ? 1 : 7, second.value(i, 0).value()));
}

TEST_F(HandingOver, what_another_chunk_will_copy_stays) {
  Gather first;
  Gather second;
  resolve(first, {1});
  resolve(second, {1});
  read_now(first, units_);
  EXPECT_EQ(first.take(0, 0), nullptr);
  EXPECT_TRUE(is_right(1, first.value(0, 0).value()));
  first.clear();
  read_now(second, units_);
  const SharedBuffer whole = second.take(0, 0);  // nobody else is left
  ASSERT_NE(whole, nullptr);
  EXPECT_TRUE(is_right(1, whole->bytes()));
}

TEST_F(HandingOver, of_two_columns_of_one_value_none_takes_it_from_the_other) {
  Gather gather;
  resolve(gather, {1}, kTwice);
  read_now(gather, units_);
  EXPECT_EQ(gather.take(0, 0), nullptr);
  EXPECT_EQ(gather.take(0, 1), nullptr);
  for (const size_t field : {size_t{0}, size_t{1}})
    EXPECT_TRUE(is_right(1, gather.value(0, field).value()));
}

TEST_F(HandingOver, of_small_neighbours_nobody_takes_the_memory_of_all) {
  Gather gather;
  resolve(gather, {5, 6});
  read_now(gather, units_);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(gather.take(i, 0), nullptr);
    EXPECT_TRUE(is_right(5 + i, gather.value(i, 0).value()));
  }
}

// Other columns than those that said in which parts it is read.
TEST_F(HandingOver, what_lies_in_no_part_is_read_by_itself) {
  Gather first;
  Gather second;
  resolve(first, {1});
  resolve(second, {1}, kLabels);
  read_now(first, units_);
  read_now(second, units_);
  EXPECT_TRUE(is_right(1, first.value(0, 0).value()));
  EXPECT_EQ(second.value(0, 0).value()[0], std::byte{1});
}

// Who came first took hold of it as one: it may not be cut any more.
TEST_F(HandingOver, a_run_that_somebody_has_claimed_as_one_is_read_as_one) {
  Gather first;
  ASSERT_TRUE(first.add(source_, {.sample = 1, .fields = kData}, policy_).ok());
  first.plan_reads({.pool = nullptr}, &units_);
  Gather second;
  resolve(second, {1});
  read_now(second, units_);
  EXPECT_EQ(second.take(0, 0), nullptr);
  EXPECT_TRUE(is_right(1, second.value(0, 0).value()));
  read_now(first, units_);
  EXPECT_TRUE(is_right(1, first.value(0, 0).value()));
}

TEST_F(HandingOver, a_run_that_the_next_epoch_finds_is_read_as_one) {
  UnitCache units(&budget_, pool_, false);
  Gather gather;
  ASSERT_TRUE(gather.add(source_, {.sample = 1, .fields = kData}, policy_).ok());
  gather.plan_reads({.pool = pool_.get()}, &units);
  read_now(gather, units);
  EXPECT_EQ(gather.take(0, 0), nullptr);
  EXPECT_EQ(units.bytes(), source_.file_bytes());
}

TEST_F(HandingOver, a_run_that_lost_values_is_dropped_by_what_is_left_of_it) {
  {
    Gather gather;
    resolve(gather, {1, 7});
    read_now(gather, units_);
    ASSERT_NE(gather.take(1, 0), nullptr);
  }
  const uint64_t left = units_.bytes();
  EXPECT_EQ(units_.evict(1), left);
  EXPECT_EQ(units_.bytes(), 0u);
  EXPECT_EQ(budget_.used(), 0u);
  Gather again;
  resolve(again, {0});
  read_now(again, units_);
  EXPECT_TRUE(is_right(0, again.value(0, 0).value()));
}

// Who takes a value may write to it: nobody else reads there.
TEST_F(HandingOver, threads_that_take_at_once_get_memory_of_their_own) {
  for (int round = 0; round < 20; ++round) {
    UnitCache units(&budget_, pool_, true);
    std::atomic<int> wrong{0}, taken{0};
    const auto work = [&] {
      for (uint64_t s = 0; s < kSizes.size(); ++s) {
        Gather gather;
        if (!gather.add(source_, {.sample = s, .fields = kData}, policy_).ok()) ++wrong;
        gather.plan_reads({.pool = pool_.get()}, &units);
        read_now(gather, units);
        if (!is_right(s, gather.value(0, 0).value())) ++wrong;
        const SharedBuffer whole = gather.take(0, 0);
        if (whole == nullptr) continue;
        ++taken;
        if (!is_right(s, whole->bytes())) ++wrong;
        std::fill_n(whole->data(), whole->size(), std::byte{0xee});
      }
    };
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) threads.emplace_back(work);
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(taken, 0);
  }
}

// -- the engine: in parts = by ranges = in order -------------------------------------------------

// These samples, of these sources.
class ListFeed final : public Feed {
 public:
  ListFeed(std::vector<Task> tasks, uint64_t batch) : tasks_(std::move(tasks)), batch_(batch) {}
  Result<bool> next(FeedStep& out) override {
    if (g_ >= tasks_.size()) return false;
    const uint64_t end = std::min<uint64_t>(tasks_.size(), g_ + batch_);
    out.tasks.assign(tasks_.begin() + static_cast<std::ptrdiff_t>(g_),
                     tasks_.begin() + static_cast<std::ptrdiff_t>(end));
    g_ = end;
    out.after = {0, g_, g_ == tasks_.size()};
    return true;
  }
  bool substitute(const Task& task, uint64_t attempt, Task& out) override {
    out = task;
    out.sample = (task.sample + attempt) % 100;
    return attempt < 100;
  }

 private:
  const std::vector<Task> tasks_;
  const uint64_t batch_;
  uint64_t g_ = 0;
};

struct Setting {
  std::shared_ptr<const Store> store;
  uint64_t samples = 300;
  bool runs = true;
  uint64_t budget = uint64_t{1} << 20;
  bool labels = false;  // a second column, and the values once more
  std::set<uint64_t> bad = {};
  uint64_t most_bytes = 50'000;  // of a request: several for a run
  bool in_caller = false;
};

// Values of bad samples are refused.
class Picky final : public Decoder {
 public:
  explicit Picky(std::set<uint64_t> bad) : bad_(std::move(bad)) {}
  const TensorSpec& output() const override { return inner_->output(); }
  bool copies() const override { return true; }
  Status check(Bytes value) const override {
    for (const uint64_t sample : bad_)
      if (is_right(sample, value)) return corrupt("damaged");
    return {};
  }
  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    HEADRACE_TRY(check(inputs[0]));
    return inner_->run(inputs, context, out);
  }

 private:
  const std::set<uint64_t> bad_;
  const std::unique_ptr<Decoder> inner_ = make_bytes_decoder();
};

std::unique_ptr<Engine> make_engine(const Setting& s, size_t sources = 1) {
  const std::shared_ptr<const Decoder> decoder = std::make_shared<Picky>(s.bad);
  const std::shared_ptr<const Decoder> plain = make_bytes_decoder();
  std::vector<ColumnWork> columns{{ColumnSpec{"data", decoder->output(), Packing::kList}}};
  SourceWork source{std::make_shared<ValuesSource>(s.store, s.samples), 0, {0}, {decoder}};
  if (s.labels) {
    columns.push_back({ColumnSpec{"label", plain->output(), Packing::kList}});
    columns.push_back({ColumnSpec{"again", plain->output(), Packing::kList}});
    source.fields = {0, 1, 0};
    source.decoders = {decoder, plain, plain};
  }
  source.policy = runs_in_parts(*source.source);
  source.policy.runs = s.runs;
  source.policy.most_bytes = s.most_bytes;
  source.policy.in_caller = s.in_caller;
  return std::make_unique<Engine>(std::vector<SourceWork>(sources, source), columns,
                                  EngineOptions{.compute_threads = 3,
                                                .io_threads = 2,
                                                .memory_budget_bytes = s.budget,
                                                .ranges_first_bytes = 50'000,
                                                .bad_samples = {.replace = !s.bad.empty()}});
}

// The samples, in order; each value is looked at, and overwritten, as users may.
Result<std::vector<int64_t>> drain(Engine& engine, size_t most = ~size_t{0}) {
  std::vector<int64_t> seen;
  for (size_t b = 0; b < most; ++b) {
    std::unique_ptr<Batch> batch;
    HEADRACE_ASSIGN(const Engine::Next outcome, engine.next(batch, 20000));
    if (outcome == Engine::Next::kTimeout) return internal("the engine hangs");
    if (outcome == Engine::Next::kEnd) break;
    for (size_t i = 0; i < batch->indices.size(); ++i) {
      const auto sample = static_cast<uint64_t>(batch->indices[i]);
      for (size_t c = 0; c < batch->columns.size(); ++c) {
        const SharedBuffer& item = batch->columns[c].items[i];
        if (c == 1 ? item->size() != kLabel || item->data()[0] != static_cast<std::byte>(sample)
                   : !is_right(sample, item->bytes()))
          return internal("a slot holds another sample");
      }
      for (const Column& column : batch->columns)
        if (column.items[i]->size() > 0)
          std::fill_n(column.items[i]->data(), column.items[i]->size(), std::byte{0xee});
      seen.push_back(batch->indices[i]);
    }
  }
  return seen;
}

std::vector<Task> tasks_of(uint64_t samples, uint64_t stride, size_t sources = 1,
                           uint64_t repeats = 1) {
  std::vector<Task> out;
  for (uint64_t g = 0; g < samples * repeats; ++g)
    out.push_back({.source = static_cast<uint32_t>(g % sources),
                   .sample = g / repeats * stride % samples,
                   .position = g});
  return out;
}

std::vector<int64_t> samples_of(const std::vector<Task>& tasks) {
  std::vector<int64_t> out;
  for (const Task& task : tasks) out.push_back(static_cast<int64_t>(task.sample));
  return out;
}

std::shared_ptr<const Store> slow(uint64_t samples) {
  return std::make_shared<LatencyStore>(ValuesSource::fill(samples),
                                        LatencyOptions{.latency = milliseconds(1)});
}

TEST(RunsInParts, equal_ranges_and_the_order_of_the_files) {
  for (const bool is_slow : {false, true})
    for (const bool runs : {true, false})
      for (const uint64_t stride : {uint64_t{1}, uint64_t{7}, uint64_t{101}})
        for (const uint64_t budget : {uint64_t{1}, uint64_t{400'000}, uint64_t{1} << 30})
          for (const bool labels : {false, true}) {
            Setting s{.runs = runs, .budget = budget, .labels = labels};
            s.store = is_slow ? slow(s.samples) : ValuesSource::fill(s.samples);
            const std::vector<Task> tasks = tasks_of(s.samples, stride);
            auto engine = make_engine(s);
            // Twice: the second epoch finds what the first one left.
            for (int epoch = 0; epoch < 2; ++epoch) {
              ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
              EXPECT_EQ(drain(*engine).value(), samples_of(tasks))
                  << is_slow << runs << stride << ' ' << budget << labels << epoch;
            }
          }
}

// A view with repeats, a blend of a data set with itself: the second one finds the value gone.
TEST(RunsInParts, samples_that_come_again_come_right) {
  for (const size_t sources : {size_t{1}, size_t{2}})
    for (const uint64_t repeats : {uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
      Setting s{.store = slow(300), .budget = 600'000};
      std::vector<Task> tasks = tasks_of(s.samples, 7, sources, repeats);
      std::vector<Task> later = tasks;  // and once more, when the runs are gone
      tasks.insert(tasks.end(), later.begin(), later.end());
      auto engine = make_engine(s, sources);
      ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
      EXPECT_EQ(drain(*engine).value(), samples_of(tasks)) << sources << ' ' << repeats;
    }
}

TEST(RunsInParts, bad_samples_are_replaced_as_by_ranges) {
  std::vector<std::vector<int64_t>> seen;
  for (const bool runs : {true, false}) {
    Setting s{.store = slow(100), .samples = 100, .runs = runs, .bad = {0, 7, 8, 41, 97}};
    auto engine = make_engine(s);
    ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks_of(100, 7), 16)).ok());
    seen.push_back(drain(*engine).value());
    EXPECT_EQ(engine->quarantine().size(), 5u);
  }
  EXPECT_EQ(seen[0], seen[1]);
}

// The store fails in the middle: the error comes in its place, and what came before is right.
TEST(RunsInParts, a_failing_store_is_an_error_in_its_place) {
  const std::vector<Task> tasks = tasks_of(300, 7);
  for (const bool later : {false, true})
    for (const uint64_t nth : {uint64_t{1}, uint64_t{5}, uint64_t{20}}) {
      Setting s;
      if (later) {
        s.store = std::make_shared<FailLaterStore>(ValuesSource::fill(300),
                                                   FailLaterOptions{.fail_read = nth});
      } else {
        auto fault = std::make_shared<FaultStore>(slow(300));
        fault->add({.fail_read = nth});
        s.store = fault;
      }
      auto engine = make_engine(s);
      ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
      const auto first = drain(*engine);
      EXPECT_EQ(first.status().code(), Code::kUnavailable) << later << nth;
      // The next feed reads again what failed.
      ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
      EXPECT_EQ(drain(*engine).value(), samples_of(tasks));
    }
}

TEST(RunsInParts, a_flipped_bit_is_in_the_value_that_it_is_in_and_no_other) {
  auto fault = std::make_shared<FaultStore>(ValuesSource::fill(20));
  // The first byte of the second sample of the first file.
  fault->add({.path = "f0", .flip_at = kHead + 5000 + kLabel + kHead, .flip_mask = std::byte{1}});
  auto engine = make_engine({.store = fault, .samples = 20, .budget = 100'000});
  ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks_of(20, 1), 1)).ok());
  for (uint64_t sample = 0; sample < 20; ++sample) {
    std::unique_ptr<Batch> batch;
    ASSERT_EQ(engine->next(batch, 20000).value(), Engine::Next::kBatch);
    EXPECT_EQ(is_right(sample, batch->columns[0].items[0]->bytes()), sample != 1) << sample;
  }
}

TEST(RunsInParts, feeds_that_are_left_anywhere_leave_nothing_behind) {
  Setting s{.store = slow(300), .budget = 600'000};
  auto engine = make_engine(s);
  const std::vector<Task> tasks = tasks_of(300, 7);
  for (size_t taken = 0; taken < 19; ++taken) {
    ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
    ASSERT_TRUE(drain(*engine, taken).ok());
    if (taken % 3 == 0) engine->stop();
  }
  ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
  EXPECT_EQ(drain(*engine).value(), samples_of(tasks));
}

TEST(RunsInParts, an_epoch_that_nobody_answers_ends_and_the_next_one_is_right) {
  const auto silent = std::make_shared<SilentStore>(ValuesSource::fill(300));
  auto engine = make_engine({.store = silent});
  ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks_of(300, 7), 16)).ok());
  std::unique_ptr<Batch> batch;
  EXPECT_EQ(engine->next(batch, 100).value(), Engine::Next::kTimeout);
  engine->stop();
  EXPECT_EQ(silent->held(), 0u);
}

TEST(RunsInParts, stay_within_the_budget) {
  constexpr uint64_t kBudget = 4 << 20;
  Setting s{.store = slow(1000), .samples = 1000, .budget = kBudget};
  auto engine = make_engine(s);
  const std::vector<Task> tasks = tasks_of(1000, 7);
  ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
  EXPECT_EQ(drain(*engine).value(), samples_of(tasks));
  // Beyond it only what the batch at the head needs: 16 samples, each in a run of its own.
  EXPECT_LE(engine->stats().memory_peak,
            kBudget + kBudget / 10 + 16 * ValuesSource(s.store, 10).file_bytes());
  EXPECT_GT(engine->stats().memory_peak, kBudget / 10);
}

// Two values of a gigabyte, of a file that is not there.
class LargeSource final : public Source {
 public:
  static constexpr uint64_t kBytes = uint64_t{1} << 30;
  LargeSource() { blocks_ = {.samples = {2}, .bytes = 2 * kBytes}; }
  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return 2; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return {}; }
  Status needs(const SampleAsk& ask, Request& out) const override {
    out.units.push_back({0, 0, ask.sample * kBytes, kBytes, kBytes});
    out.pieces.push_back({0, 0, kBytes});
    out.first_piece.push_back(1);
    return {};
  }
  bool run_of(uint64_t, Unit& run) const override {
    run = {0, 0, 0, 2 * kBytes, 2 * kBytes};
    return true;
  }
  const Store& store() const override { return store_; }
  std::string file_path(uint32_t) const override { return "none"; }
  std::string key(uint64_t sample) const override { return std::to_string(sample); }

 private:
  const MemoryStore store_;
  const Schema schema_{{"data", Kind::kBytes, Storage::kExtent}};
  Blocks blocks_;
};

// In a process of its own, which begins anew: it may have little more than that takes.
TEST(RunsInParts, memory_that_there_is_not_is_an_error_of_its_batch) {
#ifdef HEADRACE_SANITIZED
  GTEST_SKIP() << "addresses cannot be limited";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto read_with_little = [](uint64_t budget) {
    const std::shared_ptr<const Decoder> decoder = make_bytes_decoder();
    SourceWork source{std::make_shared<LargeSource>(), 0, {0}, {decoder}};
    source.policy = runs_in_parts(*source.source);
    Engine engine({source}, {{ColumnSpec{"data", decoder->output(), Packing::kList}}},
                  EngineOptions{.compute_threads = 1,
                                .io_threads = 1,
                                .memory_budget_bytes = budget,
                                .ranges_first_bytes = 0});
    const rlimit limit{uint64_t{512} << 20, uint64_t{512} << 20};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    if (!engine.start(std::make_unique<ListFeed>(tasks_of(2, 1), 1)).ok()) _exit(3);
    std::unique_ptr<Batch> batch;
    _exit(engine.next(batch, 20000).status().ok() ? 1 : 0);
  };
  // In parts, and, as the next epoch finds it, as one.
  EXPECT_EXIT(read_with_little(uint64_t{1} << 20), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(read_with_little(uint64_t{1} << 40), ::testing::ExitedWithCode(0), "");
}

// Handed over, not copied: a run is read once, and its values leave the cache with their memory.
TEST(RunsInParts, values_leave_with_their_memory) {
  auto fault = std::make_shared<FaultStore>(ValuesSource::fill(300));
  Setting s{.store = fault, .budget = uint64_t{6} << 20, .most_bytes = uint64_t{8} << 20};
  auto engine = make_engine(s);
  std::vector<Task> tasks = tasks_of(300, 1);
  ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
  EXPECT_EQ(drain(*engine).value(), samples_of(tasks));
  // The start is read by ranges (50,000 bytes); all else one read a file.
  EXPECT_LE(fault->reads(), 30u + kSizes.size());
  EXPECT_EQ(engine->stats().units_reread, 0u);
}

// Unless a thread waits for each of them.
TEST(RunsInParts, a_long_run_is_several_requests) {
  for (const bool in_caller : {false, true}) {
    auto fault = std::make_shared<FaultStore>(ValuesSource::fill(300));
    auto engine =
        make_engine({.store = fault, .budget = uint64_t{6} << 20, .in_caller = in_caller});
    const std::vector<Task> tasks = tasks_of(300, 1);
    ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
    EXPECT_EQ(drain(*engine).value(), samples_of(tasks));
    const uint64_t each = in_caller ? 1 : 3;
    EXPECT_GE(fault->reads(), 29u * each);
    EXPECT_LE(fault->reads(), 30u * each + kSizes.size());
  }
}

// One of them fails: the run has failed once all are back, and is read again for the next feed.
TEST(RunsInParts, a_run_of_which_a_request_fails_is_an_error) {
  for (const uint64_t nth : {uint64_t{10}, uint64_t{11}, uint64_t{12}}) {
    auto later = std::make_shared<FailLaterStore>(ValuesSource::fill(300),
                                                  FailLaterOptions{.fail_read = nth});
    auto engine = make_engine({.store = later});
    const std::vector<Task> tasks = tasks_of(300, 1);
    ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
    EXPECT_EQ(drain(*engine).status().code(), Code::kUnavailable) << nth;
    ASSERT_TRUE(engine->start(std::make_unique<ListFeed>(tasks, 16)).ok());
    EXPECT_EQ(drain(*engine).value(), samples_of(tasks)) << nth;
  }
}

}  // namespace
}  // namespace headrace

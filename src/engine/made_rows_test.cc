// SPDX-License-Identifier: Apache-2.0
//
// Rows that their source makes right in the slots: the same batches as by reads, whenever they
// come.
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "base/mutex.h"
#include "codec/number.h"
#include "engine/engine_fixture.h"
#include "index/row_maker.h"

namespace headrace {
namespace {

// A store of the number of each sample, which gives up what waits to be made too.
class NumberStore final : public Store {
 public:
  void read(std::span<ReadRequest> requests) const override {
    for (ReadRequest& request : requests) {
      const int64_t number = std::stoll(request.path.substr(1));
      request.into.resize(sizeof number);
      store_le(request.into.span(), number);
      complete(std::move(request), {});
    }
  }
  void cancel(const ReadGroup& group) const override {
    if (on_cancel) on_cancel(group);
  }
  StoreCost cost(const std::string&) const override { return {}; }
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string>) const override { return {}; }
  Result<ListPage> list_page(const std::string&, const std::string&) const override {
    return ListPage{};
  }
  std::function<void(const ReadGroup&)> on_cancel;
};

// Sample i is the number i.  A thread makes what is handed over, the last first; samples of `bad`
// fail.
class MadeSource final : public Source, public RowMaker {
 public:
  using Done = std::function<void(RowsToMake&&)>;
  struct Habits {
    std::set<uint64_t> bad = {};
    size_t together = 3;
    bool never = false;  // nothing is made
    bool keeps = false;  // functions that were called stay until let_go()
  };
  MadeSource(uint64_t samples, Habits habits) : samples_(samples), habits_(std::move(habits)) {
    blocks_.samples.assign(1, static_cast<uint32_t>(samples));
    blocks_.bytes = samples * 8;
    store_.on_cancel = [this](const ReadGroup& group) { give_up(group); };
    thread_ = std::thread([this] { run(); });
  }
  ~MadeSource() override {
    {
      MutexLock lock(mu_);
      closing_ = true;
      wakes_.notify_all();
    }
    thread_.join();
  }
  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return samples_; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return {}; }
  Status needs(const SampleAsk& ask, Request& out) const override {
    ++asked_;
    for (size_t f = 0; f < ask.fields.size(); ++f) {
      out.units.push_back({static_cast<uint32_t>(ask.sample), 0, 0, 8, 8});
      out.pieces.push_back({static_cast<uint32_t>(f), 0, 8});
      out.first_piece.push_back(static_cast<uint32_t>(f + 1));
    }
    return {};
  }
  bool makes_rows(uint32_t) const override { return true; }
  size_t rows_together(size_t) const override { return habits_.together; }
  void make_rows(RowsToMake&& rows) const override {
    {
      MutexLock lock(mu_);
      if (!rows.is_cancelled()) {
        waiting_.push_back(std::move(rows));
        wakes_.notify_all();
        return;
      }
    }
    refuse(std::move(rows));
  }
  const Store& store() const override { return store_; }
  std::string file_path(uint32_t file) const override { return "n" + std::to_string(file); }
  std::string key(uint64_t sample) const override { return "k" + std::to_string(sample); }
  uint64_t asked() const { return asked_; }
  uint64_t given_up() const { return given_up_; }
  size_t let_go() {
    std::vector<std::shared_ptr<const Done>> gone;
    MutexLock lock(mu_);
    gone.swap(kept_);
    return gone.size();
  }
  bool has_waiting() const {
    MutexLock lock(mu_);
    return !waiting_.empty();
  }

 private:
  void finish(RowsToMake&& rows) const {
    const auto done = std::make_shared<const Done>(std::move(rows.done));
    if (habits_.keeps) {
      MutexLock lock(mu_);
      kept_.push_back(done);
    }
    (*done)(std::move(rows));
  }
  void give_up(const ReadGroup& group) const {
    std::deque<RowsToMake> gone;
    {
      MutexLock lock(mu_);
      for (RowsToMake& rows : waiting_)
        if (rows.group.get() == &group) gone.push_back(std::move(rows));
      std::erase_if(waiting_, [](const RowsToMake& rows) { return !rows.done; });
    }
    for (RowsToMake& rows : gone) refuse(std::move(rows));
  }
  void refuse(RowsToMake&& rows) const {
    for (size_t i = 0; i < rows.samples.size(); ++i) rows.failed.emplace_back(i, cancelled("no"));
    ++given_up_;
    finish(std::move(rows));
  }
  void make(RowsToMake& rows) const {
    for (size_t i = 0; i < rows.samples.size(); ++i) {
      if (habits_.bad.contains(rows.samples[i]))
        rows.failed.emplace_back(i, corrupt("too dark"));
      else
        for (size_t c = 0; c < rows.columns.size(); ++c)
          store_le(rows.room(c, i), static_cast<int64_t>(rows.samples[i]));
    }
  }
  void run() {
    while (true) {
      RowsToMake rows;
      {
        MutexLock lock(mu_);
        while ((waiting_.empty() || habits_.never) && !closing_) wakes_.wait(mu_);
        if (closing_) return;
        rows = std::move(waiting_.back());
        waiting_.pop_back();
      }
      make(rows);
      finish(std::move(rows));
    }
  }

  const uint64_t samples_;
  const Habits habits_;
  const Schema schema_{{"n", Kind::kInt, Storage::kInline}};
  Blocks blocks_;
  NumberStore store_;
  mutable Mutex mu_;
  mutable CondVar wakes_;
  mutable std::deque<RowsToMake> waiting_ HEADRACE_GUARDED_BY(mu_);
  mutable std::vector<std::shared_ptr<const Done>> kept_ HEADRACE_GUARDED_BY(mu_);
  bool closing_ HEADRACE_GUARDED_BY(mu_) = false;
  mutable std::atomic<uint64_t> asked_{0}, given_up_{0};
  std::thread thread_;
};

struct MadeTable {
  MadeSource::Habits habits = {};
  uint64_t samples = 203;
  uint32_t sources = 1;
  DType to = DType::kI64;
  EngineOptions options = {};
  std::vector<std::shared_ptr<MadeSource>> made = {};

  std::unique_ptr<Engine> engine() {
    const std::shared_ptr<const Decoder> decoder =
        make_number_decoder(NumberForm::kInt64, to).value();
    std::vector<SourceWork> works;
    for (uint32_t k = 0; k < sources; ++k) {
      made.push_back(std::make_shared<MadeSource>(samples, habits));
      works.push_back({made.back(), k, {0, 0}, {decoder, decoder}});
    }
    std::vector<ColumnWork> columns{{ColumnSpec{"a", decoder->output(), Packing::kDense}},
                                    {ColumnSpec{"b", decoder->output(), Packing::kDense}}};
    return std::make_unique<Engine>(std::move(works), std::move(columns), options);
  }
};

Result<std::vector<int64_t>> drain_numbers(Engine& engine, size_t most = ~size_t{0}) {
  const auto holds = [](const Batch& batch, size_t i) {
    return std::all_of(batch.columns.begin(), batch.columns.end(), [&](const Column& column) {
      const Bytes values = column.values->bytes();
      const size_t each = values.size() / batch.indices.size();
      const Bytes value = values.subspan(each * i);
      return (each == 8 ? load_le<int64_t>(value) : load_le<int32_t>(value)) == batch.indices[i];
    });
  };
  return drain_checked(engine, holds, most);
}

TEST(MadeRowsTest, come_in_plan_order_however_they_are_made) {
  for (const int threads : {1, 4}) {
    for (const uint64_t batch : {1u, 8u, 300u}) {
      for (const uint32_t sources : {1u, 3u}) {
        MadeTable table{.sources = sources, .options = {.compute_threads = threads}};
        const auto engine = table.engine();
        for (int epoch = 0; epoch < 2; ++epoch) {
          ASSERT_TRUE(
              engine->start(std::make_unique<TestFeed>(table.samples, batch, 7, sources)).ok());
          const auto seen = drain_numbers(*engine);
          ASSERT_TRUE(seen.ok()) << seen.status().text();
          EXPECT_EQ(seen.value(), expected(table.samples));
        }
        for (const auto& source : table.made) EXPECT_EQ(source->asked(), 0u);
      }
    }
  }
}

TEST(MadeRowsTest, a_bad_one_is_replaced_or_raises_with_its_number) {
  MadeTable table{.habits = {.bad = {49, 56, 119}}};
  table.options.bad_samples = {.replace = true, .budget = 10};
  const auto engine = table.engine();
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(table.samples, 8)).ok());
  const auto seen = drain_numbers(*engine);
  ASSERT_TRUE(seen.ok()) << seen.status().text();
  EXPECT_EQ(seen.value().size(), table.samples);
  EXPECT_GE(engine->quarantine().size(), 3u);

  MadeTable strict{.habits = {.bad = {49}}};
  const auto other = strict.engine();
  ASSERT_TRUE(other->start(std::make_unique<TestFeed>(strict.samples, 8)).ok());
  const auto failed = drain_numbers(*other);
  EXPECT_EQ(failed.status().code(), Code::kCorrupt);
  EXPECT_NE(failed.status().text().find("k49"), std::string::npos) << failed.status().text();
}

TEST(MadeRowsTest, what_waits_is_given_up_when_the_feed_ends) {
  MadeTable table{.habits = {.never = true}};
  const auto engine = table.engine();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(table.samples, 8)).ok());
    while (!table.made[0]->has_waiting()) std::this_thread::yield();
    engine->stop();
    EXPECT_FALSE(table.made[0]->has_waiting());
  }
  EXPECT_GE(table.made[0]->given_up(), 3u);
}

// A source may let go of the function some time after it called it, when the engine is gone.
TEST(MadeRowsTest, a_function_that_was_called_holds_nothing_of_the_engine) {
  MadeTable table{.habits = {.keeps = true}};
  auto engine = table.engine();
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(table.samples, 8)).ok());
  std::unique_ptr<Batch> batch;
  ASSERT_EQ(engine->next(batch, 20000).value(), Engine::Next::kBatch);
  engine->stop();
  EXPECT_EQ(engine->stats().memory_used, 0u) << "a step is held";
  engine.reset();
  EXPECT_GE(table.made[0]->let_go(), 1u);
}

TEST(MadeRowsTest, a_feed_may_be_stopped_anywhere_and_another_begins) {
  MadeTable table{.options = {.compute_threads = 2, .batches_ahead = 16}};
  const auto engine = table.engine();
  const auto seen = stop_anywhere(*engine, table.samples,
                                  [&](size_t most) { return drain_numbers(*engine, most); });
  ASSERT_TRUE(seen.ok()) << seen.status().text();
  EXPECT_EQ(seen.value(), expected(table.samples));
}

TEST(MadeRowsTest, values_of_another_type_are_read_and_decoded) {
  MadeTable table{.to = DType::kI32};
  const auto engine = table.engine();
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(table.samples, 8)).ok());
  const auto seen = drain_numbers(*engine);
  ASSERT_TRUE(seen.ok()) << seen.status().text();
  EXPECT_EQ(seen.value(), expected(table.samples));
  EXPECT_EQ(table.made[0]->asked(), table.samples);
}

}  // namespace
}  // namespace headrace

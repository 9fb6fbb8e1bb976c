// SPDX-License-Identifier: Apache-2.0
//
// Rows: the same batches as by reads and chunks, from memory that is lent and from memory that is
// not.
#include "engine/rows.h"

#include <gtest/gtest.h>

#include "codec/array.h"
#include "engine/engine_fixture.h"
#include "storage/fault.h"
#include "storage/held.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

constexpr uint64_t kElements = 100;
constexpr uint64_t kRowsPerFile = 16;

// Row i: kElements times u16 i, sixteen rows a file after a head of six bytes.
class RowSource final : public Source {
 public:
  RowSource(std::shared_ptr<const Store> store, uint64_t samples, bool has_rows)
      : store_(std::move(store)), samples_(samples), has_rows_(has_rows) {
    blocks_.samples.assign((samples + kRowsPerFile - 1) / kRowsPerFile, kRowsPerFile);
    blocks_.bytes = samples * 2 * kElements;
  }
  static std::shared_ptr<MemoryStore> fill(uint64_t samples) {
    auto store = std::make_shared<MemoryStore>();
    for (uint64_t f = 0; f * kRowsPerFile < samples; ++f) {
      std::vector<std::byte> bytes(6 + kRowsPerFile * 2 * kElements);
      for (uint64_t i = 0; i < kRowsPerFile * kElements; ++i)
        store_le(MutableBytes(bytes).subspan(6 + 2 * i),
                 static_cast<uint16_t>(f * kRowsPerFile + i / kElements));
      store->put("f" + std::to_string(f), std::move(bytes));
    }
    return store;
  }
  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return samples_; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return {}; }
  Status needs(const SampleAsk& ask, Request& out) const override {
    ++asked_;
    const RowPlace place = place_of(ask.sample);
    out.units.push_back({place.file, 0, place.offset, 2 * kElements, 2 * kElements});
    out.pieces.push_back({0, 0, 2 * kElements});
    out.first_piece.push_back(1);
    return {};
  }
  uint64_t row_bytes(uint32_t) const override { return has_rows_ ? 2 * kElements : 0; }
  Status row_places(uint32_t, std::span<const uint64_t> samples,
                    std::span<RowPlace> out) const override {
    for (size_t i = 0; i < samples.size(); ++i) out[i] = place_of(samples[i]);
    return {};
  }
  const Store& store() const override { return *store_; }
  std::string file_path(uint32_t file) const override { return "f" + std::to_string(file); }
  std::string key(uint64_t sample) const override { return "row" + std::to_string(sample); }
  uint64_t asked() const { return asked_; }

 private:
  static RowPlace place_of(uint64_t sample) {
    return {static_cast<uint32_t>(sample / kRowsPerFile),
            6 + sample % kRowsPerFile * 2 * kElements};
  }
  const std::shared_ptr<const Store> store_;
  const uint64_t samples_;
  const bool has_rows_;
  const Schema schema_{{.name = "tokens",
                        .kind = Kind::kTokens,
                        .dtype = DType::kU16,
                        .shape = {static_cast<int64_t>(kElements)}}};
  Blocks blocks_;
  mutable std::atomic<uint64_t> asked_{0};
};

std::shared_ptr<const Decoder> decoder_to(DType to) {
  return make_array_decoder(
             {.stored = {false, DType::kU16, {static_cast<int64_t>(kElements)}}, .dtype = to})
      .value();
}

struct Table {
  uint64_t samples = 203;
  uint64_t batch = 8;
  DType to = DType::kI64;
  bool has_rows = true;
  EngineOptions options = {};
  std::shared_ptr<const RowSource> source = nullptr;

  std::unique_ptr<Engine> engine(std::shared_ptr<const Store> store) {
    source = std::make_shared<RowSource>(std::move(store), samples, has_rows);
    auto decoder = decoder_to(to);
    std::vector<ColumnWork> columns{{ColumnSpec{"t", decoder->output(), Packing::kDense}}};
    return std::make_unique<Engine>(std::vector<SourceWork>{{source, 0, {0}, {decoder}}},
                                    std::move(columns), options);
  }
};

Result<std::vector<int64_t>> drain_rows(Engine& engine, DType to, size_t most = ~size_t{0}) {
  const auto holds = [to](const Batch& batch, size_t i) {
    const Bytes values = batch.columns[0].values->bytes();
    for (size_t e = i * kElements; e < (i + 1) * kElements; ++e) {
      const int64_t value = to == DType::kI64 ? load_le<int64_t>(values.subspan(8 * e))
                                              : load_le<uint8_t>(values.subspan(e));
      if (value != batch.indices[i]) return false;
    }
    return true;
  };
  return drain_checked(engine, holds, most);
}

class RowsTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Store> held(const std::shared_ptr<MemoryStore>& store, uint64_t samples) {
    std::vector<std::string> files;
    for (uint64_t f = 0; f * kRowsPerFile < samples; ++f) files.push_back("f" + std::to_string(f));
    return hold_files(store, files, {.folder = folder_.path()}).value().store;
  }
  TestFolder folder_;
};

TEST_F(RowsTest, come_in_plan_order_from_memory_that_is_lent_without_a_question_to_the_index) {
  for (const int threads : {1, 2, 5}) {
    for (const uint64_t batch : {1u, 8u, 64u, 500u}) {
      Table table{.batch = batch, .options = {.compute_threads = threads}};
      const auto engine = table.engine(held(RowSource::fill(table.samples), table.samples));
      ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(table.samples, batch)).ok());
      const auto seen = drain_rows(*engine, DType::kI64);
      ASSERT_TRUE(seen.ok()) << seen.status().text();
      EXPECT_EQ(seen.value(), expected(table.samples));
      EXPECT_EQ(table.source->asked(), 0u);
    }
  }
}

TEST_F(RowsTest, that_are_not_in_memory_are_read_as_all_samples_are) {
  Table table{.options = {.compute_threads = 2}};
  const auto engine = table.engine(RowSource::fill(table.samples));
  for (int epoch = 0; epoch < 3; ++epoch) {
    ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(table.samples, 8)).ok());
    const auto seen = drain_rows(*engine, DType::kI64);
    ASSERT_TRUE(seen.ok()) << seen.status().text();
    EXPECT_EQ(seen.value(), expected(table.samples));
  }
  EXPECT_GE(table.source->asked(), table.samples);
}

// A thread that plans does so without the lock: the end must not pass it by.
TEST_F(RowsTest, an_engine_that_ends_while_a_thread_plans_ends) {
  for (int round = 0; round < 100; ++round) {
    Table table{.samples = 16, .options = {.compute_threads = 2}};
    const auto engine = table.engine(held(RowSource::fill(table.samples), table.samples));
    ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(table.samples, 8)).ok());
    if (round % 2 == 0) {
      EXPECT_TRUE(drain_rows(*engine, DType::kI64).ok());
    }
  }
}

TEST_F(RowsTest, whose_numbers_do_not_fit_are_replaced_as_by_the_other_way) {
  std::vector<std::vector<int64_t>> ways;
  for (const bool has_rows : {true, false}) {
    Table table{.samples = 300, .to = DType::kU8, .has_rows = has_rows};
    table.options.bad_samples = {.replace = true, .budget = 100};
    const auto engine = table.engine(held(RowSource::fill(304), 304));
    ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(300, 8)).ok());
    const auto seen = drain_rows(*engine, DType::kU8);
    ASSERT_TRUE(seen.ok()) << seen.status().text();
    EXPECT_GE(engine->quarantine().size(), 44u);  // rows 256 to 299
    ways.push_back(seen.value());
  }
  EXPECT_EQ(ways[0], ways[1]);
}

TEST_F(RowsTest, whose_numbers_do_not_fit_raise_with_file_offset_and_key) {
  std::vector<std::string> texts;
  for (const bool has_rows : {true, false}) {
    Table table{.samples = 300, .to = DType::kU8, .has_rows = has_rows};
    const auto engine = table.engine(held(RowSource::fill(304), 304));
    ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(300, 8, 1)).ok());
    const auto seen = drain_rows(*engine, DType::kU8);
    ASSERT_FALSE(seen.ok());
    texts.push_back(seen.status().text());
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0].find("f16"), std::string::npos) << texts[0];
  EXPECT_NE(texts[0].find("row256"), std::string::npos) << texts[0];
}

TEST_F(RowsTest, a_file_that_is_shorter_than_the_index_says_is_an_error_and_no_crash) {
  const auto store = RowSource::fill(48);
  store->put("f2", std::vector<std::byte>(100));
  Table table{.samples = 48};
  const auto engine = table.engine(held(store, 48));
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(48, 8, 1)).ok());
  const auto seen = drain_rows(*engine, DType::kI64);
  EXPECT_EQ(seen.status().code(), Code::kCorrupt) << seen.status().text();
}

TEST_F(RowsTest, a_feed_may_be_stopped_anywhere_and_another_begins) {
  Table table{.options = {.compute_threads = 2, .batches_ahead = 16}};
  const auto engine = table.engine(held(RowSource::fill(table.samples), table.samples));
  const auto seen = stop_anywhere(
      *engine, table.samples, [&](size_t most) { return drain_rows(*engine, DType::kI64, most); });
  ASSERT_TRUE(seen.ok()) << seen.status().text();
  EXPECT_EQ(seen.value(), expected(table.samples));
}

TEST_F(RowsTest, storage_that_fails_raises) {
  const auto inner = RowSource::fill(64);
  const auto faulty = std::make_shared<FaultStore>(inner);
  faulty->add({.fail_read = 3});
  Table table{.samples = 64};
  table.options.bad_samples = {.replace = true, .budget = 100};
  const auto engine = table.engine(faulty);
  ASSERT_TRUE(engine->start(std::make_unique<TestFeed>(64, 8)).ok());
  EXPECT_EQ(drain_rows(*engine, DType::kI64).status().code(), Code::kUnavailable);
}

TEST_F(RowsTest, columns_of_other_kinds_go_the_other_way) {
  const auto source = std::make_shared<RowSource>(RowSource::fill(16), 16, true);
  const auto decoder = decoder_to(DType::kI64);
  const SourceWork work{source, 0, {0}, {decoder}};
  const ColumnSpec dense{"t", decoder->output(), Packing::kDense};
  EXPECT_TRUE(row_columns(work, {{dense}}).has_value());
  EXPECT_FALSE(row_columns(work, {{ColumnSpec{"t", decoder->output(), Packing::kList}}}));
  EXPECT_FALSE(row_columns({source, 0, {kKeyField}, {decoder}}, {{dense}}));
  EXPECT_FALSE(row_columns({source, 0, {0}, {decoder}, {.is_far = true}}, {{dense}}));
  const std::shared_ptr<const Decoder> normalized =
      make_array_decoder({.stored = {false, DType::kU16, {static_cast<int64_t>(kElements)}},
                          .dtype = DType::kF32,
                          .mean = {1},
                          .deviation = {2}})
          .value();
  EXPECT_FALSE(row_columns({source, 0, {0}, {normalized}},
                           {{ColumnSpec{"t", normalized->output(), Packing::kDense}}}));
}

// Tokens as rows, and beside them what the source makes of its index alone: the number of the
// sample, four times.
class NumberedSource final : public Source {
 public:
  explicit NumberedSource(std::shared_ptr<const RowSource> rows) : rows_(std::move(rows)) {
    schema_ = rows_->schema();
    schema_.push_back({.name = "number", .kind = Kind::kArray, .dtype = DType::kI32, .shape = {4}});
  }
  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return rows_->size(); }
  const Blocks& blocks() const override { return rows_->blocks(); }
  Hash128 fingerprint() const override { return {}; }
  Status needs(const SampleAsk& ask, Request& out) const override {
    out.clear();
    for (const uint32_t field : ask.fields) {
      if (field == 0) {
        RowPlace place;
        HEADRACE_TRY(rows_->row_places(0, {&ask.sample, 1}, {&place, 1}));
        const auto unit = static_cast<uint32_t>(out.units.size());
        out.units.push_back({place.file, 0, place.offset, 2 * kElements, 2 * kElements});
        out.pieces.push_back({unit, 0, 2 * kElements});
        out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
        continue;
      }
      out.inline_bytes.resize(4);
      store_le(MutableBytes(out.inline_bytes), static_cast<int32_t>(ask.sample));
      out.pieces.push_back({kInlineUnit, 0, ask.sample % 50 == 49 ? 2u : 4u});
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    return {};
  }
  uint64_t row_bytes(uint32_t field) const override { return field == 0 ? rows_->row_bytes(0) : 0; }
  Status row_places(uint32_t field, std::span<const uint64_t> samples,
                    std::span<RowPlace> out) const override {
    return rows_->row_places(field, samples, out);
  }
  bool assembles(uint32_t field) const override { return field == 1; }
  Status assemble(const SampleAsk&, std::span<const AssembleOutput> outputs) const override {
    for (const AssembleOutput& output : outputs) {
      if (output.pieces[0].bytes.size() != 4) return corrupt("half a number");
      HEADRACE_ASSIGN(const MutableBytes to, output.value->room(16));
      for (size_t i = 0; i < 4; ++i)
        store_le(to.subspan(4 * i), load_le<int32_t>(output.pieces[0].bytes));
    }
    return {};
  }
  const Store& store() const override { return rows_->store(); }
  std::string file_path(uint32_t file) const override { return rows_->file_path(file); }
  std::string key(uint64_t sample) const override { return rows_->key(sample); }

 private:
  const std::shared_ptr<const RowSource> rows_;
  Schema schema_;
};

TEST_F(RowsTest, a_sample_that_two_columns_cannot_hold_is_bad_once) {
  // Of 260 samples the last four do not fit into u8.
  const auto source = std::make_shared<NumberedSource>(
      std::make_shared<RowSource>(held(RowSource::fill(260), 260), 260, true));
  const auto decoder = decoder_to(DType::kU8);
  std::vector<size_t> bad;
  for (const size_t count : {1u, 2u}) {
    const ColumnWork column{ColumnSpec{"a", decoder->output(), Packing::kDense}};
    SourceWork work{source, 0, std::vector<uint32_t>(count, 0), {}};
    work.decoders.assign(count, decoder);
    EngineOptions options;
    options.bad_samples = {.replace = true, .budget = 100};
    Engine engine({std::move(work)}, std::vector<ColumnWork>(count, column), options);
    ASSERT_TRUE(engine.start(std::make_unique<TestFeed>(260, 8)).ok());
    const auto seen = drain_rows(engine, DType::kU8);
    ASSERT_TRUE(seen.ok()) << seen.status().text();
    EXPECT_EQ(seen.value().size(), 260u);
    bad.push_back(engine.quarantine().size());
  }
  EXPECT_GE(bad[0], 4u);
  EXPECT_EQ(bad[0], bad[1]);
}

TEST_F(RowsTest, what_a_source_makes_of_its_index_is_written_beside_them) {
  const auto rows = std::make_shared<RowSource>(held(RowSource::fill(120), 120), 120, true);
  const auto source = std::make_shared<NumberedSource>(rows);
  const auto tokens = decoder_to(DType::kI64);
  const std::shared_ptr<const Decoder> number =
      make_array_decoder({.stored = {false, DType::kI32, {4}}, .dtype = DType::kI32}).value();
  const std::vector<ColumnWork> columns{{ColumnSpec{"t", tokens->output(), Packing::kDense}},
                                        {ColumnSpec{"n", number->output(), Packing::kDense}}};
  const SourceWork work{source, 0, {0, 1}, {tokens, number}};
  const auto found = row_columns(work, columns);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE((*found)[1].is_assembled);
  EngineOptions options;
  options.bad_samples = {.replace = true, .budget = 10};
  Engine engine({work}, columns, options);
  ASSERT_TRUE(engine.start(std::make_unique<TestFeed>(120, 8)).ok());
  size_t seen = 0;
  while (true) {
    std::unique_ptr<Batch> batch;
    const auto outcome = engine.next(batch, 20000);
    ASSERT_TRUE(outcome.ok()) << outcome.status().text();
    ASSERT_NE(outcome.value(), Engine::Next::kTimeout);
    if (outcome.value() == Engine::Next::kEnd) break;
    for (size_t i = 0; i < batch->indices.size(); ++i, ++seen) {
      EXPECT_EQ(load_le<int64_t>(batch->columns[0].values->bytes().subspan(8 * kElements * i)),
                batch->indices[i]);
      for (size_t k = 0; k < 4; ++k)
        EXPECT_EQ(load_le<int32_t>(batch->columns[1].values->bytes().subspan(16 * i + 4 * k)),
                  batch->indices[i]);
    }
  }
  EXPECT_EQ(seen, 120u);
  EXPECT_EQ(engine.quarantine().size(), 2u);  // 49 and 99, whose number is cut
}

}  // namespace
}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// For tests of the engine: a source, a decoder and a feed whose every byte is known.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "index/row_table.h"
#include "storage/memory.h"

namespace headrace {

inline constexpr uint64_t kSample = 1000;  // bytes of each sample
inline constexpr uint64_t kPerFile = 10;

// Sample i: kSample bytes that all hold i mod 251, ten samples a file.  `encoding` makes every
// file one unit that opens as a whole (each byte is stored plus one); kRows makes it a table of
// rows that decode_unit() reads by itself, of a size that the index does not know.
inline constexpr uint32_t kRows = 2;
class TestSource final : public Source {
 public:
  TestSource(std::shared_ptr<const Store> store, uint64_t samples, uint32_t encoding = 0)
      : store_(std::move(store)), samples_(samples), encoding_(encoding) {
    blocks_.samples.assign((samples + kPerFile - 1) / kPerFile, kPerFile);
    blocks_.bytes = samples * kSample;
  }
  static std::shared_ptr<MemoryStore> fill(uint64_t samples, int shift = 0) {
    auto store = std::make_shared<MemoryStore>();
    for (uint64_t f = 0; f * kPerFile < samples; ++f) {
      std::vector<std::byte> bytes;
      for (uint64_t i = f * kPerFile; i < (f + 1) * kPerFile; ++i)
        bytes.insert(bytes.end(), kSample,
                     static_cast<std::byte>(i % 251 + static_cast<uint64_t>(shift)));
      store->put("f" + std::to_string(f), std::move(bytes));
    }
    return store;
  }
  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return samples_; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return {}; }
  Status needs(const SampleAsk& ask, Request& out) const override {
    const uint64_t sample = ask.sample;
    const auto file = static_cast<uint32_t>(sample / kPerFile);
    const uint64_t at = sample % kPerFile * kSample;
    for (size_t f = 0; f < ask.fields.size(); ++f) {
      if (encoding_ == 0) {
        out.units.push_back({file, 0, at, kSample, kSample});
        out.pieces.push_back({static_cast<uint32_t>(out.units.size() - 1), 0, kSample});
      } else if (encoding_ == kRows) {
        out.units.push_back({file, encoding_, 0, 0, kPerFile * kSample / 3});
        out.pieces.push_back(
            {static_cast<uint32_t>(out.units.size() - 1), sample % kPerFile, kRow});
      } else {
        out.units.push_back({file, encoding_, 0, kPerFile * kSample, kPerFile * kSample});
        out.pieces.push_back({static_cast<uint32_t>(out.units.size() - 1), at, kSample});
      }
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    if (ask.want_key) out.key = key(sample);
    return {};
  }
  bool run_of(uint64_t sample, Unit& run) const override {
    run = {static_cast<uint32_t>(sample / kPerFile), 0, 0, kPerFile * kSample, kPerFile * kSample};
    return true;
  }
  Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const override {
    ++opened_;
    if (unit.encoding == kRows) return open_rows(unit, decoded);
    decoded.resize(stored.size());
    for (size_t i = 0; i < stored.size(); ++i)
      decoded.data()[i] = static_cast<std::byte>(std::to_integer<int>(stored[i]) - 1);
    return {};
  }
  const Store& store() const override { return *store_; }
  std::string file_path(uint32_t file) const override { return "f" + std::to_string(file); }
  std::string key(uint64_t sample) const override { return "key" + std::to_string(sample); }
  int opened() const { return opened_; }

 private:
  Status open_rows(const Unit& unit, Buffer& decoded) const {
    HEADRACE_ASSIGN(const Buffer file, store_->read_all(file_path(unit.file)));
    RowTableBuilder rows;
    for (uint64_t i = 0; i < kPerFile; ++i) {
      rows.add_value(file.bytes().subspan(i * kSample, kSample));
      rows.end_row();
    }
    rows.finish(decoded);
    return {};
  }

  const std::shared_ptr<const Store> store_;
  const uint64_t samples_;
  const uint32_t encoding_;
  const Schema schema_{{"data", Kind::kBytes, Storage::kExtent}};
  Blocks blocks_;
  mutable std::atomic<int> opened_{0};
};

// Copies; refuses values whose first byte is in `bad`.  `copies`: it says so, and values that
// somebody holds alone are handed over.
class TestDecoder final : public Decoder {
 public:
  explicit TestDecoder(std::set<int> bad = {}, std::chrono::microseconds time = {},
                       bool copies = false)
      : bad_(std::move(bad)), time_(time), copies_(copies) {}
  bool copies() const override { return copies_; }
  Status check(Bytes value) const override {
    return bad_.count(std::to_integer<int>(value[0])) > 0 ? corrupt("damaged").at(3) : Status();
  }
  const TensorSpec& output() const override { return spec_; }
  Status run(std::span<const Bytes> inputs, SampleContext&, Slot& out) const override {
    const Bytes value = inputs[0];
    if (time_.count() > 0) std::this_thread::sleep_for(time_);
    HEADRACE_TRY(check(value));
    const int64_t n = static_cast<int64_t>(value.size());
    HEADRACE_ASSIGN(const MutableBytes room, out.room({&n, 1}));
    std::copy(value.begin(), value.end(), room.begin());
    return {};
  }

 private:
  const std::set<int> bad_;
  const std::chrono::microseconds time_;
  const bool copies_;
  const TensorSpec spec_{DType::kU8, {static_cast<int64_t>(kSample)}};
};

class TestFeed final : public Feed {
 public:
  // Sample g * stride, of the sources in turn.
  TestFeed(uint64_t samples, uint64_t batch, uint64_t stride = 7, uint32_t sources = 1)
      : samples_(samples), batch_(batch), stride_(stride), sources_(sources) {}
  Result<bool> next(FeedStep& out) override {
    if (g_ >= samples_) return false;
    for (uint64_t i = 0; i < batch_ && g_ < samples_; ++i, ++g_)
      out.tasks.push_back(
          {static_cast<uint32_t>(g_ % sources_), g_ * stride_ % samples_, 0, g_, true});
    out.after = {0, g_, g_ == samples_};
    return true;
  }
  bool substitute(const Task& task, uint64_t attempt, Task& out) override {
    if (attempt >= samples_) return false;
    out = task;
    out.sample = (task.sample + attempt) % samples_;
    return true;
  }

 private:
  const uint64_t samples_, batch_, stride_;
  const uint32_t sources_;
  uint64_t g_ = 0;
};

struct Scene {
  std::shared_ptr<const Store> store = TestSource::fill(100);
  uint64_t samples = 100;
  uint64_t batch = 8;
  uint32_t encoding = 0;
  std::set<int> bad = {};
  Packing packing = Packing::kDense;
  EngineOptions options = {};
  ReadPolicy policy = {};
  uint64_t stride = 7;
  std::chrono::microseconds decode_time = {};
  bool copies = false;  // values are handed over
};

inline std::unique_ptr<Engine> make_engine(const Scene& s) {
  auto decoder = std::make_shared<TestDecoder>(s.bad, s.decode_time, s.copies);
  std::vector<ColumnWork> columns{{ColumnSpec{"data", decoder->output(), s.packing}}};
  std::vector<SourceWork> sources{
      {std::make_shared<TestSource>(s.store, s.samples, s.encoding), 0, {0}, {decoder}, s.policy}};
  return std::make_unique<Engine>(std::move(sources), std::move(columns), s.options);
}

// The samples of at most so many batches, in order; or the first error.  `holds(batch, i)` says
// whether slot i holds its own sample.
template <typename F>
Result<std::vector<int64_t>> drain_checked(Engine& engine, const F& holds,
                                           size_t most = ~size_t{0}) {
  std::vector<int64_t> seen;
  for (size_t b = 0; b < most; ++b) {
    std::unique_ptr<Batch> batch;
    HEADRACE_ASSIGN(const Engine::Next outcome, engine.next(batch, 20000));
    if (outcome == Engine::Next::kTimeout) return internal("the engine hangs");
    if (outcome == Engine::Next::kEnd) break;
    for (size_t i = 0; i < batch->indices.size(); ++i) {
      if (!holds(*batch, i)) return internal("a slot holds another sample");
      seen.push_back(batch->indices[i]);
    }
  }
  return seen;
}

// All samples of a TestSource.
inline Result<std::vector<int64_t>> drain(Engine& engine) {
  return drain_checked(engine, [](const Batch& batch, size_t i) {
    const Column& c = batch.columns[0];
    const Bytes value = c.packing == Packing::kDense
                            ? c.values->bytes().subspan(i * kSample, kSample)
                            : c.items[i]->bytes();
    return std::all_of(value.begin(), value.end(), [&](std::byte b) {
      return std::to_integer<int>(b) == batch.indices[i] % 251;
    });
  });
}

inline Result<std::vector<int64_t>> run_once(const Scene& s) {
  auto engine = make_engine(s);
  HEADRACE_TRY(engine->start(std::make_unique<TestFeed>(s.samples, s.batch, s.stride)));
  return drain(*engine);
}

inline std::vector<int64_t> expected(uint64_t samples, uint64_t stride = 7) {
  std::vector<int64_t> out;
  for (uint64_t g = 0; g < samples; ++g) out.push_back(static_cast<int64_t>(g * stride % samples));
  return out;
}

// Feeds that are left after some batches, with and without stop(), and then a whole one, whose
// samples are given.  `drain(most)` takes so many batches.
template <typename F>
Result<std::vector<int64_t>> stop_anywhere(Engine& engine, uint64_t samples, const F& drain) {
  for (size_t taken = 0; taken < 12; ++taken) {
    HEADRACE_TRY(engine.start(std::make_unique<TestFeed>(samples, 8)));
    HEADRACE_TRY(drain(taken).status());
    if (taken % 3 == 0) engine.stop();
  }
  HEADRACE_TRY(engine.start(std::make_unique<TestFeed>(samples, 8)));
  return drain(~size_t{0});
}

}  // namespace headrace

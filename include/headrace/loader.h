// SPDX-License-Identifier: Apache-2.0
//
// Loader: batches of a data set, decoded ahead of the consumer by threads of its own.
//
//   hr::Loader loader(hr::open("train-{0000..0007}.tar"),
//                     {{"image", hr::image("jpg").step("random_resized_crop", {{"size", 224}})},
//                      {"label", hr::scalar("cls")}},
//                     {.order = {.batch_size = 64, .seed = 1}});
//   for (uint64_t epoch = 0; epoch < 2; ++epoch) {
//     loader.begin(epoch);
//     while (auto batch = loader.next()) train((*batch)["image"], (*batch)["label"]);
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/plan.h"

namespace hr {

struct LoaderOptions {
  OrderOptions order = {};
  int threads = 0;             // compute threads; 0: the CPUs this process may use
  uint64_t memory_budget = 0;  // bytes; 0: a quarter of the memory, at most 8 GiB
  bool replace_bad_samples = false;
  uint64_t most_bad_samples = 1000;  // an epoch, on this rank
};

// One output of a batch.
struct Column {
  std::string name;
  Array values;                  // all but "list"
  std::vector<Array> items;      // "list": one a sample
  std::vector<int64_t> offsets;  // "ragged": where each sample begins, in elements, and the end
  std::vector<std::vector<int64_t>> shapes;  // "padded", "ragged", "list": of each sample
  // Of fields with many values a sample: sample i has the items, or the rows of `values`, from
  // first[i] up to first[i + 1].
  std::vector<int64_t> first;
};

// Owns its memory: it stays valid when the loader is gone.
struct Batch {
  std::vector<Column> columns;
  std::vector<int64_t> indices;  // which samples these are
  std::vector<bool> valid;       // false: padding
  std::string state;             // the loader's, as of after this batch

  // The column of that name; throws UsageError when there is none.
  HEADRACE_API const Column& operator[](const std::string& name) const;
};

// begin(), next() and load() by one thread at a time.
class HEADRACE_API Loader {
 public:
  Loader(const Dataset& data, const Fields& fields, const LoaderOptions& options = {});
  ~Loader();
  Loader(Loader&&) noexcept;

  uint64_t steps() const;  // of an epoch, on every rank
  // Starts an epoch; an unfinished one is ended.  Without a number: where the state stands.
  void begin(uint64_t epoch);
  void begin();
  // The next batch, or nothing at the end of the epoch.
  std::optional<Batch> next();

  // JSON, the same that Python's state_dict() gives; good for any number of ranks.
  std::string state() const;
  void load(const std::string& state);
  std::string plan_id() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace hr

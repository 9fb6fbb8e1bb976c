// SPDX-License-Identifier: Apache-2.0
//
// Loader: batches of a data set, decoded ahead of the consumer by threads of its own.
//
//   hr::Loader loader(hr::open("train-{0000..0007}.tar"),
//                     {{"image", hr::image("jpg").random_resized_crop(224)},
//                      {"label", hr::scalar("cls")}},
//                     {.order = {.batch_size = 64, .seed = 1}});
//   for (uint64_t epoch = loader.next_epoch(); epoch < 90; ++epoch) {
//     loader.begin(epoch, 90);
//     while (auto batch = loader.next()) train((*batch)["image"], (*batch)["label"]);
//   }
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/plan.h"
#include "headrace/stats.h"

namespace hr {

// mixup or cutmix: each picture of a batch is mixed with the one before it; labels become
// f32[batch, classes], the shares.
struct Mix {
  std::string kind;  // "mixup" or "cutmix"
  int64_t classes = 0;
  double alpha = 1;
  double p = 1;  // the share of batches that are mixed
  std::string image = "image";
  std::string label = "label";
};
inline Mix mixup(int64_t classes, double alpha = 1, double p = 1) {
  return {"mixup", classes, alpha, p};
}
inline Mix cutmix(int64_t classes, double alpha = 1, double p = 1) {
  return {"cutmix", classes, alpha, p};
}

struct LoaderOptions {
  OrderOptions order = {};
  int threads = 0;             // compute threads; 0: the CPUs this process may use
  uint64_t memory_budget = 0;  // bytes; 0: a quarter of the memory, at most 8 GiB
  bool replace_bad_samples = false;
  uint64_t most_bad_samples = 1000;  // an epoch, on this rank
  std::vector<Mix> mix = {};         // one of them is drawn for each batch
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
  std::vector<int64_t> indices;   // which samples these are
  std::vector<uint32_t> sources;  // of a blend: which part each is from
  std::vector<bool> valid;        // false: padding
  std::string state;              // the loader's, as of after this batch

  // The column of that name; throws UsageError when there is none.
  HEADRACE_API const Column& operator[](const std::string& name) const;
};

// begin(), next(), load() and set_weights() by one thread at a time; the rest from any.
class HEADRACE_API Loader {
 public:
  Loader(const Dataset& data, const Fields& fields, const LoaderOptions& options = {});
  Loader(const Blend& blend, const Fields& fields, const LoaderOptions& options = {});
  ~Loader();
  Loader(Loader&&) noexcept;

  uint64_t steps() const;  // of an epoch, on every rank
  // The epoch that comes next: the one a loaded state stands in, the one set_epoch() named, or one
  // more than the last.
  uint64_t next_epoch() const;
  void set_epoch(uint64_t epoch);
  // Starts an epoch, from its start or from where a loaded state stands; an unfinished one is
  // ended.  `until`: you go through all epochs before that one, so the next is prepared while the
  // end of this one is consumed.  Without a number: next_epoch().
  void begin(uint64_t epoch, std::optional<uint64_t> until = {});
  void begin();
  // The next batch, or nothing at the end of the epoch.
  std::optional<Batch> next();

  // JSON, the same that Python's state_dict() gives; good for any number of ranks.
  std::string state() const;
  void load(const std::string& state);
  std::string plan_id() const;
  // Where the options differ from the loaded state, which holds; one line each.
  std::vector<std::string> differences() const;

  // Of a blend: other weights from step `at_step` of the current epoch on.  Every rank must say so
  // for the same step, and before it reaches that step.
  void set_weights(const std::map<std::string, double>& weights, uint64_t at_step);

  Stats stats() const;
  // Over all batches so far; from the time in next() and between its calls.
  Verdict verdict() const;
  std::vector<std::string> notes() const;     // what may be worth changing
  std::vector<BadSample> quarantine() const;  // the samples that were replaced

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace hr

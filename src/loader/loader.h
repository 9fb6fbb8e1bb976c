// SPDX-License-Identifier: Apache-2.0
//
// Loader: a plan over one or several sources, fed through an engine.  The only place
// that knows all the boxes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batch/mix.h"
#include "batch/pack_rows.h"
#include "codec/deferred.h"
#include "device/device_plan.h"
#include "engine/engine.h"
#include "loader/field.h"
#include "plan/plan.h"
#include "plan/sample_groups.h"

namespace headrace {

class Gpu;

struct LoaderSource {
  std::string name;  // of a mixture; "" for a single source
  std::shared_ptr<const Source> source;
  // What to make of its fields; none: everything as it lies.  The sources of a mixture give the
  // same outputs, each from fields and by steps of its own.
  std::vector<FieldRequest> requests = {};
  std::shared_ptr<const SampleWeights> weights = nullptr;  // of its samples; null: each once
  std::shared_ptr<const Grouping> groups = nullptr;        // delivered together; null: each alone
};

// The source as a plan sees it: blocks of samples, or of the draws that weights give.
Result<PlanSource> plan_source(const LoaderSource& source);

// Where pictures are decoded.
enum class DecodeOn : uint8_t {
  kAuto,  // by the chip where it can, by the CPU's threads too where pictures wait for the chip
  kGpu,   // by the chip; a field that it cannot decode is an error
  kCpu,
};

// Batches are delivered on a GPU.
struct DeviceOptions {
  int index = 0;  // as CUDA counts the devices of this process
  DecodeOn decode = DecodeOn::kAuto;
  uint64_t memory_budget_bytes = 0;  // 0: device/device_plan.h, usual_device_budget()
};

struct DeviceStats {
  std::string name;                                    // "NVIDIA H200"
  uint64_t decoded_on_device = 0, decoded_on_cpu = 0;  // pictures of fields that the chip decodes
  uint64_t memory_used = 0, memory_peak = 0;
  uint64_t memory_budget = 0, memory_planned = 0;  // planned: within the budget, of this Loader
  uint64_t batches_ahead = 0;
  double device_seconds = 0, cpu_seconds = 0;  // a picture, measured; 0: nothing yet
};

struct LoaderOptions {
  PlanOptions plan;
  int threads = 0;  // compute threads; 0: the usable CPUs over local_ranks
  uint64_t memory_budget_bytes =
      0;                // 0: a quarter of the usable memory over local_ranks, at most 8 GiB
  int local_ranks = 1;  // ranks that share this node and this affinity mask
  BadSamples bad_samples;
  std::optional<MixOptions> mix;
  std::optional<RowPacking> packing;  // groups become rows of one length
  int processes = 0;                  // that functions run in: so many threads more wait for them
  bool read_runs = false;             // also where the store prefers them
  std::optional<DeviceOptions> device;
  bool pinned = false;  // columns lie in memory that a GPU copies from by itself
};

// begin(), next(), load() and set_weights() by one consumer at a time; the rest from any thread.
class Loader {
 public:
  static Result<std::unique_ptr<Loader>> make(std::vector<LoaderSource> sources,
                                              LoaderOptions options);

  // Of an epoch: all are alike, but for groups of samples that are made anew each time.
  uint64_t epoch_length(uint64_t epoch) const { return plan_->epoch_length(epoch); }
  uint64_t steps_in_epoch(uint64_t epoch) const { return plan_->steps_in_epoch(epoch); }
  uint64_t steps_from(PlanPosition at) const { return plan_->steps_from(at.epoch, at.g); }
  uint64_t global_batch() const { return plan_options_.cut.batch; }

  // An epoch that has no batch is refused.
  Status check_epoch(uint64_t epoch) const;
  // Starts to deliver from (epoch, g).  `run_on`: prepares the next epoch while the end of
  // this one is consumed, up to (not including) epoch `until`.
  Status begin(PlanPosition from, bool run_on, uint64_t until);
  // Whether the running feed comes next to (epoch, 0): then begin() is not needed.
  bool continues_with(uint64_t epoch) const {
    return running_ && epoch < until_ && ahead_ == PlanPosition{epoch, 0};
  }
  Result<Engine::Next> next(std::unique_ptr<Batch>& out, int timeout_ms);
  void stop();
  // From now on batches lie in memory of this arena.  Not while a feed runs.
  void use_arena(std::shared_ptr<Arena> arena);
  bool is_running() const { return running_; }

  // The state at a position.  load() makes the order of a state this loader's own.
  PlanState state(PlanPosition at) const { return plan_->state(at); }
  Status load(const PlanState& state);
  // (epoch, g), or the start of the next epoch when this one has no further step.
  PlanPosition this_or_next_epoch(PlanPosition at) const { return plan_->this_or_next_epoch(at); }
  // Other weights of a blend from there on; `at.g` may lie beyond the epoch's end.  The running
  // feed plans steps from there on anew; what it read for steps before is kept.
  Status set_weights(const std::vector<double>& weights, PlanPosition at);
  std::vector<std::string> differences() const { return plan_->differences(); }
  Hash128 plan_id() const { return plan_->plan_id(); }
  std::string fingerprint() const { return plan_->state({}).fingerprint; }

  const std::vector<ColumnWork>& columns() const { return columns_; }
  // What batches have after these: of packed rows.
  const std::vector<ColumnSpec>& added_columns() const { return added_; }
  const EngineOptions& engine_options() const { return engine_options_; }
  // Whether whole blocks of some source are read, instead of single samples.
  bool reads_runs() const;
  const std::vector<std::string>& notes() const { return notes_; }
  bool is_forked() const { return engine_->is_forked(); }
  EngineStats stats() const { return engine_->stats(); }
  std::optional<DeviceStats> device_stats() const;
  std::vector<Quarantined> quarantine() const { return engine_->quarantine(); }

 private:
  Loader() = default;
  Status add_sources();
  Status add_column(const std::string& output, const LoaderOptions& options);
  Status make_fields(const std::string& output, const std::shared_ptr<LateWork>& late,
                     std::vector<FieldWork>& made);
  static int compute_threads(const LoaderOptions& options);
  Status open_device(const LoaderOptions& options);
  std::shared_ptr<LateWork> late_work_of(const std::string& output, const LoaderOptions& options);
  Status tell_where(const std::string& output, const LateWork& late, const FieldWork& made,
                    const LoaderOptions& options);
  Status add_device_stage(const LoaderOptions& options);
  Status add_mix(const LoaderOptions& options);
  const DeferredSpec* left_of(size_t column) const;  // what is left to the device; null: nothing
  Status add_packing(const LoaderOptions& options);
  Status add_masks();
  void choose_engine_options(const LoaderOptions& options);
  void choose_policies(const LoaderOptions& options);
  void ask_for_all_that_is_kept();
  void note_shared_units();
  Status replan(std::unique_ptr<Plan> plan, uint64_t draw);

  std::vector<LoaderSource> sources_;
  std::vector<PlanSource> plan_sources_;
  PlanOptions plan_options_;
  std::unique_ptr<Plan> plan_;  // lengths and states; feeds look up in copies of their own
  std::vector<ColumnWork> columns_;
  std::vector<ColumnSpec> added_;
  std::vector<SourceWork> works_;
  EngineOptions engine_options_;
  std::vector<std::string> notes_;
  bool running_ = false;
  PlanPosition begun_;        // where the running feed began
  PlanPosition ahead_;        // where it stands, as delivered
  uint64_t until_ = 0;        // the epoch it ends before
  std::shared_ptr<Gpu> gpu_;  // null: batches stay on the CPU
  unsigned samplings_ = 0;    // that its engines decode
  uint64_t device_budget_ = 0;
  DevicePlan device_plan_;
  std::vector<std::shared_ptr<DecodeShare>> shares_;  // of the fields they decode
  std::unique_ptr<Engine> engine_;
};

}  // namespace headrace

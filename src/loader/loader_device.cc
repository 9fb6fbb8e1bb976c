// SPDX-License-Identifier: Apache-2.0
//
// A loader whose batches go to a GPU.
#include <fmt/format.h>

#include <algorithm>

#include "device/device_stage.h"
#include "device/gpu.h"
#include "loader/equal_outputs.h"
#include "loader/loader.h"

namespace headrace {
namespace {

uint64_t rank_batch(const LoaderOptions& options) {
  return options.plan.cut.batch / options.plan.cut.world;
}

// The CPU's threads decode some pictures where two batches wait for the chip, and leave three
// threads to bring it pictures: so many keep its engines busy (docs/gpu.md).
ShareLimits share_limits(const LoaderOptions& options, int threads) {
  constexpr int kBringing = 3;
  if (options.device->decode == DecodeOn::kGpu) return {};
  return {.least_waiting = std::max<int64_t>(64, static_cast<int64_t>(2 * rank_batch(options))),
          .threads = std::max(0, threads - kBringing)};
}

}  // namespace

Status Loader::open_device(const LoaderOptions& options) {
  if (options.device) {
    HEADRACE_ASSIGN(gpu_, Gpu::open(options.device->index));
    if (options.device->decode != DecodeOn::kCpu) {
      std::string why;
      samplings_ = samplings_of(gpu_, why);
      if (samplings_ == 0 && options.device->decode == DecodeOn::kGpu)
        return unsupported(fmt::format("decode=\"gpu\": {}", why));
      if (samplings_ == 0)
        notes_.push_back(fmt::format("pictures are decoded on the CPU: {}", why));
    }
    engine_options_.column_arena = gpu_->pinned();
  } else if (options.pinned) {
    HEADRACE_ASSIGN(const std::shared_ptr<Gpu> gpu, Gpu::open(0));
    engine_options_.column_arena = gpu->pinned();
  }
  return {};
}

// What may be left to the device of this output; null: nothing.
std::shared_ptr<LateWork> Loader::late_work_of(const std::string& output,
                                               const LoaderOptions& options) {
  if (gpu_ == nullptr) return nullptr;
  for (const LoaderSource& s : sources_) {
    const FieldRequest* request = request_of(s, output);
    if (request->what != "image" || request->wrap_decoder || request->otherwise ||
        request->optional || request->many || request->packing)
      return nullptr;
  }
  auto late = std::make_shared<LateWork>();
  if (samplings_ != 0)
    late->share =
        std::make_shared<DecodeShare>(samplings_, share_limits(options, compute_threads(options)));
  return late;
}

// Whether the chip decodes the field; where it was asked to and does not, an error.
Status Loader::tell_where(const std::string& output, const LateWork& late, const FieldWork& made,
                          const LoaderOptions& options) {
  const DeferredSpec* left = made.decoder->deferred();
  if (left != nullptr && !left->has_pixels) {
    shares_.push_back(late.share);
    return {};
  }
  if (options.device->decode == DecodeOn::kCpu || late.share == nullptr) return {};
  const std::string why =
      late.why_on_cpu.empty() ? "its pictures are not of one size" : late.why_on_cpu;
  if (options.device->decode == DecodeOn::kGpu)
    return invalid(fmt::format("field '{}', decode=\"gpu\": {}", output, why));
  notes_.push_back(fmt::format("field '{}' is decoded on the CPU: {}", output, why));
  return {};
}

const DeferredSpec* Loader::left_of(size_t column) const {
  const Decoder* decoder = works_.front().decoders[column].get();
  return gpu_ == nullptr || decoder == nullptr ? nullptr : decoder->deferred();
}

// Pictures that the device makes are mixed there too.
Status Loader::add_mix(const LoaderOptions& options) {
  if (!options.mix) return {};
  MixOptions how = *options.mix;
  std::vector<ColumnSpec> specs;
  for (size_t c = 0; c < columns_.size(); ++c) {
    ColumnSpec& spec = specs.emplace_back(columns_[c].spec);
    const DeferredSpec* left = left_of(c);
    if (left == nullptr) continue;
    spec.value = left->result;
    spec.packing = Packing::kDense;
    if (spec.name == how.image) how.pictures_later = true;
  }
  HEADRACE_ASSIGN(std::shared_ptr<const BatchStage> mix, make_mix(how, specs));
  engine_options_.stages.push_back(std::move(mix));
  return {};
}

Status Loader::add_device_stage(const LoaderOptions& options) {
  if (gpu_ == nullptr) return {};
  DeviceStageOptions made;
  DeviceNeeds needs;
  needs.batches = engine_options_.batches_ahead;
  const uint64_t batch = rank_batch(options);
  for (size_t c = 0; c < columns_.size(); ++c) {
    const ColumnSpec& spec = columns_[c].spec;
    const DeferredSpec* left = left_of(c);
    made.columns.push_back(left == nullptr ? std::nullopt : std::optional(*left));
    const TensorSpec& value = left == nullptr ? spec.value : left->result;
    if (left == nullptr && (spec.packing != Packing::kDense || spec.many)) continue;
    needs.batch_bytes += value.bytes() * batch;
    if (left != nullptr && left->has_pixels) needs.each_worker += spec.value.bytes() * batch;
    if (options.mix && spec.name == options.mix->image) needs.each_worker += value.bytes() * batch;
    needs.decodes = needs.decodes || (left != nullptr && !left->has_pixels);
  }
  made.columns.resize(columns_.size() + added_.size());
  HEADRACE_ASSIGN(const uint64_t free, gpu_->free_bytes());
  device_budget_ = options.device->memory_budget_bytes != 0 ? options.device->memory_budget_bytes
                                                            : usual_device_budget(free);
  HEADRACE_ASSIGN(device_plan_, plan_device_memory(device_budget_, needs));
  made.workers = device_plan_.workers;
  made.scratch_bytes = device_plan_.scratch_bytes;
  HEADRACE_ASSIGN(std::shared_ptr<const BatchStage> stage,
                  make_device_stage(gpu_, std::move(made)));
  engine_options_.stages.push_back(std::move(stage));
  engine_options_.batches_ahead = device_plan_.batches_ahead;
  return {};
}

std::optional<DeviceStats> Loader::device_stats() const {
  if (gpu_ == nullptr) return std::nullopt;
  DeviceStats out;
  out.name = gpu_->name();
  for (const auto& share : shares_) {
    out.decoded_on_device += share->on_device();
    out.decoded_on_cpu += share->on_cpu();
  }
  if (!shares_.empty()) {
    const DecodeRates rates = shares_.front()->rates();
    out.device_seconds = rates.device_seconds;
    out.cpu_seconds = rates.cpu_seconds;
  }
  out.memory_budget = device_budget_;
  out.memory_planned = device_plan_.bytes;
  out.batches_ahead = device_plan_.batches_ahead;
  out.memory_used = gpu_->memory().used_bytes();
  out.memory_peak = gpu_->memory().most_used_bytes();
  return out;
}

}  // namespace headrace

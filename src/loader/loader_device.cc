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

// Pictures that may wait for the chip before the CPU's threads decode some: two batches.
int64_t most_waiting(const LoaderOptions& options) {
  if (options.device->decode == DecodeOn::kGpu) return 0;
  const StepCut& cut = options.plan.cut;
  return std::max<int64_t>(64, static_cast<int64_t>(2 * cut.batch / cut.world));
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
  if (options.mix && options.mix->image == output) return nullptr;
  for (const LoaderSource& s : sources_) {
    const FieldRequest* request = request_of(s, output);
    if (request->what != "image" || request->then || request->otherwise || request->optional ||
        request->many || request->packing)
      return nullptr;
  }
  auto late = std::make_shared<LateWork>();
  if (samplings_ != 0)
    late->share = std::make_shared<DecodeShare>(samplings_, most_waiting(options));
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

Status Loader::add_device_stage() {
  if (gpu_ == nullptr) return {};
  DeviceStageOptions options;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Decoder* decoder = works_.front().decoders[c].get();
    const DeferredSpec* left = decoder == nullptr ? nullptr : decoder->deferred();
    options.columns.push_back(left == nullptr ? std::nullopt : std::optional(*left));
  }
  options.columns.resize(columns_.size() + added_.size());
  HEADRACE_ASSIGN(std::shared_ptr<const BatchStage> stage,
                  make_device_stage(gpu_, std::move(options)));
  engine_options_.stages.push_back(std::move(stage));
  // One with the consumer, one on its way, one in the engines, one that is read.
  engine_options_.batches_ahead = std::max<size_t>(engine_options_.batches_ahead, 5);
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
  out.memory_used = gpu_->memory().used_bytes();
  out.memory_peak = gpu_->memory().most_used_bytes();
  return out;
}

}  // namespace headrace

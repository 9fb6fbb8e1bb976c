// SPDX-License-Identifier: Apache-2.0
#include "device/device_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kMostScratch = 512 * kMiB;
constexpr uint64_t kLeastScratch = 32 * kMiB;
constexpr size_t kLeastBatches = 2;

uint64_t total(const DevicePlan& plan, const DeviceNeeds& needs) {
  return plan.batches_ahead * needs.batch_bytes +
         static_cast<uint64_t>(plan.workers) * (needs.each_worker + plan.scratch_bytes);
}

}  // namespace

uint64_t usual_device_budget(uint64_t free_bytes) {
  return std::min(free_bytes / 4, uint64_t{8} << 30);
}

Result<DevicePlan> plan_device_memory(uint64_t budget, const DeviceNeeds& needs) {
  DevicePlan plan;
  plan.scratch_bytes = needs.decodes ? kMostScratch : 0;
  plan.batches_ahead = std::max(needs.batches, DeviceNeeds::kUsualBatches);
  while (total(plan, needs) > budget) {
    if (plan.batches_ahead > DeviceNeeds::kUsualBatches)
      --plan.batches_ahead;
    else if (plan.scratch_bytes > kLeastScratch)
      plan.scratch_bytes /= 2;
    else if (plan.workers > 1)
      --plan.workers;
    else if (plan.batches_ahead > kLeastBatches)
      --plan.batches_ahead;
    else
      return exhausted(fmt::format(
          "a batch takes {} MiB on the device, and two of them with {} MiB on their way do not fit "
          "into device_memory_budget ({} MiB); make the batch smaller or the budget larger",
          needs.batch_bytes / kMiB, (needs.each_worker + plan.scratch_bytes) / kMiB,
          budget / kMiB));
  }
  plan.bytes = total(plan, needs);
  return plan;
}

}  // namespace headrace

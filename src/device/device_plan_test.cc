// SPDX-License-Identifier: Apache-2.0
#include "device/device_plan.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(DevicePlan, with_room_everything_is_ahead) {
  const DevicePlan plan =
      plan_device_memory(8192 * kMiB, {.batch_bytes = 75 * kMiB, .decodes = true}).value();
  EXPECT_EQ(plan.workers, 2);
  EXPECT_EQ(plan.batches_ahead, 5u);
  EXPECT_EQ(plan.scratch_bytes, 512 * kMiB);
}

TEST(DevicePlan, small_batches_are_many) {
  const DeviceNeeds needs{.batch_bytes = kMiB, .batches = 64};
  EXPECT_EQ(plan_device_memory(100 * kMiB, needs).value().batches_ahead, 64u);
  EXPECT_EQ(plan_device_memory(20 * kMiB, needs).value().batches_ahead, 20u);
  EXPECT_EQ(plan_device_memory(4 * kMiB, needs).value().batches_ahead, 4u);
}

TEST(DevicePlan, never_more_than_the_budget) {
  for (uint64_t budget = 60; budget < 5000; budget += 37)
    for (const uint64_t batch : {uint64_t{0}, uint64_t{1}, uint64_t{75}, uint64_t{700}})
      for (const uint64_t each : {uint64_t{0}, uint64_t{40}})
        for (const bool decodes : {false, true}) {
          const DeviceNeeds needs{batch * kMiB, each * kMiB, decodes, batch == 1 ? 40u : 5u};
          const auto plan = plan_device_memory(budget * kMiB, needs);
          const uint64_t least = 2 * batch + each + (decodes ? 32 : 0);
          EXPECT_EQ(plan.ok(), least <= budget) << budget << " " << batch << " " << each;
          if (!plan.ok()) continue;
          const DevicePlan& p = plan.value();
          EXPECT_LE(p.bytes, budget * kMiB);
          EXPECT_GE(p.workers, 1);
          EXPECT_GE(p.batches_ahead, 2u);
          EXPECT_EQ(p.scratch_bytes == 0, !decodes);
        }
}

TEST(DevicePlan, what_does_not_fit_is_said_with_both_numbers) {
  const auto plan = plan_device_memory(100 * kMiB, {.batch_bytes = 75 * kMiB, .decodes = true});
  EXPECT_EQ(plan.status().code(), Code::kExhausted);
  EXPECT_NE(plan.status().text().find("75 MiB"), std::string::npos) << plan.status().text();
  EXPECT_NE(plan.status().text().find("100 MiB"), std::string::npos) << plan.status().text();
}

TEST(DevicePlan, the_model_gets_three_quarters) {
  EXPECT_EQ(usual_device_budget(4096 * kMiB), 1024 * kMiB);
  EXPECT_EQ(usual_device_budget(uint64_t{140} << 30), uint64_t{8} << 30);
}

}  // namespace
}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "codec/decode_share.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(DecodeShare, the_cpu_takes_a_picture_that_it_makes_before_the_device_would) {
  const DecodeRates rates{.device_seconds = 1e-4, .cpu_seconds = 4e-3};
  EXPECT_FALSE(cpu_takes_next(0, rates, 8));
  EXPECT_FALSE(cpu_takes_next(40, rates, 8));  // just as long
  EXPECT_TRUE(cpu_takes_next(41, rates, 8));
}

TEST(DecodeShare, a_device_with_little_to_do_gets_all_pictures) {
  EXPECT_FALSE(cpu_takes_next(7, {}, 8));
  EXPECT_TRUE(cpu_takes_next(8, {}, 8));
  EXPECT_TRUE(cpu_takes_next(8, {.device_seconds = 1e-9}, 8));  // nothing of the CPU yet
  EXPECT_FALSE(cpu_takes_next(7, {1.0, 1e-3}, 8));              // however slow it is
}

TEST(DecodeShare, only_so_many_threads_decode_at_a_time) {
  DecodeShare share(~0u, {.least_waiting = 1, .threads = 2});
  share.handed_over(1000, 1);
  EXPECT_FALSE(share.leave_to_device(JpegSampling::k420));
  share.begins_on_cpu();
  EXPECT_FALSE(share.leave_to_device(JpegSampling::k420));
  share.begins_on_cpu();
  EXPECT_TRUE(share.leave_to_device(JpegSampling::k420));
  share.failed_on_cpu();
  EXPECT_FALSE(share.leave_to_device(JpegSampling::k420));
  share.decoded_on_cpu(1);
  EXPECT_FALSE(share.leave_to_device(JpegSampling::k420));
  EXPECT_EQ(share.on_cpu(), 1u);
}

TEST(DecodeShare, the_device_is_measured_while_it_has_work) {
  DecodeShare share(~0u, {.least_waiting = 1, .threads = 8});
  share.handed_over(10, 5 * kMs);
  share.finished(10, 6 * kMs);  // 0.1 ms each
  EXPECT_DOUBLE_EQ(share.rates().device_seconds, 1e-4);
  share.handed_over(10, 1000 * kMs);  // it had nothing to do meanwhile
  share.handed_over(10, 1000 * kMs);
  share.finished(10, 1001 * kMs);
  share.finished(10, 1002 * kMs);
  EXPECT_NEAR(share.rates().device_seconds, 1e-4, 1e-9);
  share.begins_on_cpu();
  share.decoded_on_cpu(4 * kMs);
  EXPECT_DOUBLE_EQ(share.rates().cpu_seconds, 4e-3);
  EXPECT_TRUE(share.leave_to_device(JpegSampling::k420));
  share.handed_over(41, 2000 * kMs);
  EXPECT_FALSE(share.leave_to_device(JpegSampling::k420));
  EXPECT_EQ(share.on_device(), 1u);
  EXPECT_EQ(share.on_cpu(), 1u);
}

// A chip that becomes slower (another process came) is seen as slower soon.
TEST(DecodeShare, what_is_old_counts_less) {
  DecodeShare share(~0u, {.least_waiting = 100, .threads = 8});
  uint64_t now = kMs;
  const auto batches = [&](int count, uint64_t ns_each) {
    for (int i = 0; i < count; ++i) {
      share.handed_over(256, now);
      now += 256 * ns_each;
      share.finished(256, now);
    }
  };
  batches(1000, 50'000);
  EXPECT_NEAR(share.rates().device_seconds, 50e-6, 1e-7);
  batches(64, 500'000);
  EXPECT_NEAR(share.rates().device_seconds, 500e-6, 50e-6);
}

TEST(DecodeShare, asked_for_all_the_device_takes_all_that_it_can) {
  DecodeShare share(1u << static_cast<unsigned>(JpegSampling::k444), {});
  share.handed_over(1'000'000, 1);
  EXPECT_TRUE(share.leave_to_device(JpegSampling::k444));
  EXPECT_FALSE(share.leave_to_device(JpegSampling::k420));
}

}  // namespace
}  // namespace headrace

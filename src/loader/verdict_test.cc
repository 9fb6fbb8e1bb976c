// SPDX-License-Identifier: Apache-2.0
#include "loader/verdict.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

// Ten seconds, half of them waiting; 4 threads.
VerdictCounters waiting() {
  return {.batches = 100,
          .wait_s = 5,
          .step_s = 5,
          .decode_items = 1000,
          .decode_busy_s = 4,
          .read_items = 1000,
          .read_bytes = 1e8,
          .read_latency_median_ms = 50,
          .read_latency_p99_ms = 90,
          .compute_threads = 4};
}

TEST(VerdictTest, few_batches_tell_nothing) {
  EXPECT_EQ(verdict_of({}).cause, "unknown");
}

TEST(VerdictTest, a_loop_that_does_not_wait_is_the_models) {
  VerdictCounters c = waiting();
  c.wait_s = 0.1;
  EXPECT_EQ(verdict_of(c).cause, "model");
}

TEST(VerdictTest, small_reads_that_take_long_are_latency_and_large_ones_bandwidth) {
  VerdictCounters c = waiting();
  EXPECT_EQ(verdict_of(c).cause, "storage latency");
  EXPECT_NE(verdict_of(c).text().find("50.00 ms"), std::string::npos);
  c.read_bytes = 1e11;
  EXPECT_EQ(verdict_of(c).cause, "storage bandwidth");
}

TEST(VerdictTest, busy_threads_are_the_decoder_and_a_slow_function_comes_before_it) {
  VerdictCounters c = waiting();
  c.decode_busy_s = 38;
  EXPECT_EQ(verdict_of(c).cause, "decoder");
  c.functions = {{"x", 30}};
  EXPECT_EQ(verdict_of(c).cause, "python");
  EXPECT_NEAR(verdict_of(c).numbers.at("python_share"), 30.0 / 38, 1e-9);
  c.functions = {{"x", 30, 4}};
  EXPECT_NE(verdict_of(c).finding.find("in 4 processes"), std::string::npos);
}

}  // namespace
}  // namespace headrace

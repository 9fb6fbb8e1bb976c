// SPDX-License-Identifier: Apache-2.0
#include "storage/test_stores.h"

#include <gtest/gtest.h>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "storage/memory.h"

namespace headrace {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<MemoryStore> one_file(size_t bytes) {
  auto store = std::make_shared<MemoryStore>();
  store->put("f", std::vector<std::byte>(bytes));
  return store;
}

// Reads of `bytes` each with these priorities; the order in which they complete, and the time of
// the last.
struct Finished {
  std::vector<uint64_t> order;
  double seconds = 0;
};
Finished run(const Store& store, uint64_t bytes, const std::vector<uint64_t>& priorities) {
  Mutex mu;
  CondVar came;
  Finished out;
  std::vector<ReadRequest> requests;
  const auto done = [&](ReadRequest&& r) {
    MutexLock lock(mu);
    EXPECT_TRUE(r.status.ok()) << r.status.text();
    out.order.push_back(r.priority);
    came.notify_one();
  };
  for (const uint64_t priority : priorities)
    requests.push_back({.path = "f", .length = bytes, .priority = priority, .done = done});
  const uint64_t begin = steady_ns();
  store.read(requests);
  MutexLock lock(mu);
  while (out.order.size() < priorities.size()) came.wait(mu);
  out.seconds = static_cast<double>(steady_ns() - begin) / 1e9;
  return out;
}

TEST(LatencyStore, any_number_of_reads_takes_the_time_of_one) {
  const LatencyStore store(one_file(1000),
                           {.latency = 20ms, .bytes_per_second = 100'000});  // 10 ms of bytes
  const Finished got = run(store, 1000, std::vector<uint64_t>(500, 0));
  EXPECT_GE(got.seconds, 0.030);
  EXPECT_LT(got.seconds, 5) << "one after the other they would take 15 s";
  EXPECT_EQ(store.most_under_way(), 500u);
  EXPECT_EQ(store.under_way(), 0u);
}

TEST(LatencyStore, a_shared_bandwidth_is_shared_in_the_order_of_priority) {
  const LatencyStore store(one_file(1000),
                           {.latency = 5ms, .total_bytes_per_second = 100'000, .threads = 1});
  const Finished got = run(store, 1000, {9, 3, 7, 1, 5});  // 10 ms each
  EXPECT_GE(got.seconds, 0.055);
  EXPECT_EQ(got.order, (std::vector<uint64_t>{1, 3, 5, 7, 9}));
}

TEST(LatencyStore, says_what_it_costs) {
  const LatencyStore store(one_file(1), {.latency = 50ms, .bytes_per_second = 100'000'000});
  const StoreCost cost = store.cost("f");
  EXPECT_EQ(cost.latency_ns, 50'000'000u);
  EXPECT_EQ(cost.bytes_per_second, 100'000'000u);
  EXPECT_TRUE(cost.is_remote());
  EXPECT_GT(cost.parallel_reads, 100u);
}

TEST(LatencyStore, gone_it_answers_what_it_still_holds) {
  Status got;
  {
    const LatencyStore store(one_file(1), {.latency = 1h});
    ReadRequest request{.path = "f", .length = 1, .done = [&](ReadRequest&& r) { got = r.status; }};
    store.read({&request, 1});
    EXPECT_EQ(store.under_way(), 1u);
  }
  EXPECT_EQ(got.code(), Code::kCancelled);
}

TEST(FailLaterStore, the_nth_read_fails_when_its_time_has_come_and_in_another_thread) {
  const FailLaterStore store(one_file(8), {.fail_read = 2, .code = Code::kPermission});
  Buffer out;
  EXPECT_TRUE(store.read_at("f", 0, 8, out).ok());
  Mutex mu;
  CondVar came;
  std::optional<ReadRequest> got;
  std::thread::id where;
  ReadRequest request{.path = "f", .offset = 3, .length = 1, .done = [&](ReadRequest&& r) {
                        MutexLock lock(mu);
                        where = std::this_thread::get_id();
                        got = std::move(r);
                        came.notify_one();
                      }};
  store.read({&request, 1});
  {
    MutexLock lock(mu);
    while (!got) came.wait(mu);
  }
  EXPECT_NE(where, std::this_thread::get_id());
  EXPECT_EQ(got->status.code(), Code::kPermission);
  EXPECT_EQ(got->status.place().file, "f");
  EXPECT_EQ(got->status.place().offset, 3);
  EXPECT_GE(got->completed_ns - got->sent_ns, 1'000'000u);
  EXPECT_TRUE(store.read_at("f", 0, 8, out).ok());
  EXPECT_EQ(store.reads(), 3u);
}

TEST(SilentStore, a_wait_for_it_ends_when_the_work_is_interrupted) {
  const SilentStore silent(one_file(8));
  std::atomic<bool> interrupted{false};
  const InterruptScope scope(&interrupted);
  // Also by threads that parallel_for starts: each waits, and one of them gives all of them up.
  const Status status = parallel_for(3, 3, [&](size_t i) -> Status {
    if (i == 2) {
      interrupted = true;
      return {};
    }
    Buffer into;
    return silent.read_at("f", 0, 1, into);
  });
  EXPECT_EQ(status.code(), Code::kCancelled);
}

TEST(SilentStore, answers_nothing_until_it_is_cancelled) {
  size_t done = 0;
  {
    const SilentStore store(one_file(8));
    const auto group = std::make_shared<ReadGroup>();
    std::vector<ReadRequest> requests;
    for (int i = 0; i < 3; ++i)
      requests.push_back({.path = "f",
                          .length = 1,
                          .group = i < 2 ? group : nullptr,
                          .done = [&done](ReadRequest&& r) {
                            EXPECT_EQ(r.status.code(), Code::kCancelled);
                            ++done;
                          }});
    store.read(requests);
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(done, 0u);
    EXPECT_EQ(store.held(), 3u);
    group->cancel();
    store.cancel(*group);
    EXPECT_EQ(done, 2u);
    EXPECT_EQ(store.held(), 1u);
  }
  EXPECT_EQ(done, 3u);
}

}  // namespace
}  // namespace headrace

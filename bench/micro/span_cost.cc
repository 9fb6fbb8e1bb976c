// SPDX-License-Identifier: Apache-2.0
//
// What tracing and counting cost: nanoseconds of a span (off, on), of a span whose times are known,
// of a counter's update and of a histogram's, each on some threads at a time.  The clock alone
// stands beside them: a span looks at it twice.
//
//   span_cost [threads=1,2] [times=2000000]
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "arguments.h"
#include "trace/counters.h"
#include "trace/histogram.h"
#include "trace/spans.h"

namespace headrace {
namespace {

constexpr int kRounds = 5;  // the best counts: the machine has other things to do

// Of this thread's processor time: waiting for a processor is no cost of ours.
uint64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// Nanoseconds of one of `times` calls, while as many threads do the same.
double cost(int threads, uint64_t times, const std::function<void(uint64_t)>& loop) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> ready{0};
    std::vector<uint64_t> took(static_cast<size_t>(threads));
    std::vector<std::thread> all;
    for (size_t t = 0; t < took.size(); ++t)
      all.emplace_back([&, t] {
        loop(1000);  // the ring is there, its pages too
        ready.fetch_add(1);
        while (ready.load() < threads) std::this_thread::yield();
        const uint64_t begin = cpu_ns();
        loop(times);
        took[t] = cpu_ns() - begin;
      });
    for (std::thread& thread : all) thread.join();
    const uint64_t slowest = *std::max_element(took.begin(), took.end());
    best = std::min(best, static_cast<double>(slowest) / static_cast<double>(times));
    collect_spans();
  }
  return best;
}

int main_of(int argc, char** argv) {
  Options options{{"threads", "1,2"}, {"times", "2000000"}};
  read_arguments(argc, argv, options);
  const uint64_t times = std::stoull(options["times"]);
  StageCounters counters;
  Histogram histogram;
  std::atomic<uint64_t> sink{0};

  const auto spans = [](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) const Span span(Stage::kDecode, i, i);
  };
  const struct {
    const char* name;
    bool tracing;
    std::function<void(uint64_t)> loop;
  } kCosts[] = {
      {"clock", false,
       [&](uint64_t n) {
         uint64_t sum = 0;
         for (uint64_t i = 0; i < n; ++i) sum += steady_ns();
         sink.fetch_add(sum, std::memory_order_relaxed);
       }},
      {"span, tracing off", false, spans},
      {"span, tracing on", true, spans},
      {"record_span, off", false,
       [](uint64_t n) {
         for (uint64_t i = 0; i < n; ++i) record_span(Stage::kRead, i, i + 1, i, i);
       }},
      {"record_span, on", true,
       [](uint64_t n) {
         for (uint64_t i = 0; i < n; ++i) record_span(Stage::kRead, i, i + 1, i, i);
       }},
      {"counters.work()", false,
       [&](uint64_t n) {
         for (uint64_t i = 0; i < n; ++i) counters.work(1, i, i);
       }},
      {"histogram.add()", false,
       [&](uint64_t n) {
         for (uint64_t i = 0; i < n; ++i) histogram.add(i);
       }},
  };
  for (const auto& what : kCosts) {
    std::printf("%-18s", what.name);
    for (const std::string& threads : pieces(options["threads"])) {
      set_tracing(what.tracing);
      std::printf("  %s threads %6.1f ns", threads.c_str(),
                  cost(std::stoi(threads), times, what.loop));
      set_tracing(false);
    }
    std::printf("\n");
  }
  return counters.snapshot().items > 0 ? 0 : 1;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::main_of(argc, argv);
}

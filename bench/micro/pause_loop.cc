// SPDX-License-Identifier: Apache-2.0
//
// After a pause of the consumer: how long the next batches take, beside the time of making one.
// One compute thread, samples that take 0.5 ms each.  Prints the time of a batch when the consumer
// never pauses, and the longest wait of the ten batches after each pause.
//
//   pause_loop [pauses=10] [pause_ms=1000] [batches=10]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "arguments.h"
#include "engine/engine_fixture.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

Result<double> wait_ms(Engine& engine) {
  const auto begin = Clock::now();
  std::unique_ptr<Batch> batch;
  HEADRACE_ASSIGN(const Engine::Next outcome, engine.next(batch, 60000));
  if (outcome != Engine::Next::kBatch) return internal("no batch came");
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Status run(Options& options) {
  const size_t pauses = std::stoul(options["pauses"]), batches = std::stoul(options["batches"]);
  constexpr size_t kSteady = 100;
  Scene s;
  s.samples = (kSteady + (pauses + 1) * batches) * s.batch;
  s.store = TestSource::fill(s.samples);
  s.decode_time = std::chrono::microseconds(500);
  s.options = {.compute_threads = 1, .io_threads = 2};
  const auto engine = make_engine(s);
  HEADRACE_TRY(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)));
  std::vector<double> steady, longest;
  for (size_t k = 0; k < kSteady; ++k) {
    HEADRACE_ASSIGN(steady.emplace_back(), wait_ms(*engine));
  }
  for (size_t p = 0; p < pauses; ++p) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(options["pause_ms"])));
    double most = 0;
    for (size_t k = 0; k < batches; ++k) {
      HEADRACE_ASSIGN(const double ms, wait_ms(*engine));
      most = std::max(most, ms);
    }
    longest.push_back(most);
  }
  std::sort(steady.begin(), steady.end());
  std::sort(longest.begin(), longest.end());
  const double making = steady[steady.size() / 2];
  const double median = longest[longest.size() / 2];
  std::printf(
      "a batch is made in %.2f ms; the longest wait of %zu after a pause: median %.2f ms "
      "(%.2fx), worst of %zu pauses %.2f ms (%.2fx)\n",
      making, batches, median, median / making, pauses, longest.back(), longest.back() / making);
  return {};
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::run_program(
      argc, argv, {{"pauses", "10"}, {"pause_ms", "1000"}, {"batches", "10"}}, headrace::run);
}

// SPDX-License-Identifier: Apache-2.0
//
// After a pause of the consumer: how long the next batches take, beside the time of making one.
// One compute thread, samples that take 0.5 ms each.  Prints the time of a batch when the consumer
// never pauses, and the longest wait of the ten batches after each pause; beside it the longest of
// as many batches without a pause, which is what the machine does by itself.
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

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const char* when, const std::vector<double>& longest, double making) {
  const double middle = median(longest);
  const double worst = *std::max_element(longest.begin(), longest.end());
  std::printf("the longest wait %s: median %.2f ms (%.2fx), worst of %zu %.2f ms (%.2fx)\n", when,
              middle, middle / making, longest.size(), worst, worst / making);
}

Status run(Options& options) {
  const size_t pauses = std::stoul(options["pauses"]), batches = std::stoul(options["batches"]);
  Scene s;
  s.samples = (2 * pauses + 1) * batches * s.batch;
  s.store = TestSource::fill(s.samples);
  s.decode_time = std::chrono::microseconds(500);
  s.options = {.compute_threads = 1, .io_threads = 2};
  const auto engine = make_engine(s);
  HEADRACE_TRY(engine->start(std::make_unique<TestFeed>(s.samples, s.batch)));
  std::vector<double> steady, without, after;
  // In turn, so that both meet the same machine.
  for (size_t p = 0; p < pauses; ++p)
    for (const bool is_after : {true, false}) {
      if (is_after)
        std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(options["pause_ms"])));
      double most = 0;
      for (size_t k = 0; k < batches; ++k) {
        HEADRACE_ASSIGN(const double ms, wait_ms(*engine));
        most = std::max(most, ms);
        if (!is_after) steady.push_back(ms);
      }
      (is_after ? after : without).push_back(most);
    }
  const double making = median(steady);
  std::printf("a batch is made in %.2f ms; of %zu batches each\n", making, batches);
  print("after a pause", after, making);
  print("without one", without, making);
  return {};
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::run_program(
      argc, argv, {{"pauses", "10"}, {"pause_ms", "1000"}, {"batches", "10"}}, headrace::run);
}

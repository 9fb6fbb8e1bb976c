// SPDX-License-Identifier: Apache-2.0
//
// The whole loader without Python: shards through plan, engine, decode and batches of 64, handed
// to a consumer that does nothing.  Beside jpeg_loop it shows what the loader costs, and how both
// grow with threads.
//
//   loader_loop SHARDS… [threads=1,2] [seconds=3] [mode=f32,u8] [batch=64] [trace=off]
//
// mode=bytes: the values as they are stored, nothing decoded; beside pread_loop.
//
// trace=both: what spans cost over the image loop.  One loader runs on; tracing goes on and off in
// pairs of `pair` batches each, every pair in the other order than the one before.  Prints the
// median over the pairs of what a piece took with spans over what it took without, with its
// interval of confidence: the time, and the processor time of all threads, which other work on the
// machine disturbs less.
//
//   loader_loop SHARDS… threads=2 mode=u8 batch=16 trace=both [rounds=300] [pair=8]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "loader/loader.h"
#include "open/open.h"
#include "trace/spans.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

FieldRequest image_field(const std::string& mode) {
  if (mode == "bytes") return {.output = "image", .field = "jpg", .what = "bytes"};
  FieldRequest image{.output = "image", .field = "jpg", .what = "image"};
  image.steps.push_back({"random_resized_crop", Params({{"size", int64_t{224}}})});
  image.steps.push_back({"random_flip", {}});
  if (mode != "u8")
    image.steps.push_back(
        {"normalize", Params({{"mean", std::vector<double>{0.485, 0.456, 0.406}},
                              {"std", std::vector<double>{0.229, 0.224, 0.225}}})});
  return image;
}

Result<std::unique_ptr<Loader>> start(const std::shared_ptr<const Source>& source,
                                      const std::string& mode, int threads, Options& options) {
  LoaderOptions o;
  o.threads = threads;
  o.plan.seed = 1;
  o.plan.cut.batch = std::stoull(options["batch"]);
  HEADRACE_ASSIGN(auto loader, Loader::make({{"", source, {image_field(mode)}}}, o));
  HEADRACE_TRY(loader->begin({0, 0}, true, uint64_t{1} << 40));
  return loader;
}

Result<double> measure(const std::shared_ptr<const Source>& source, const std::string& mode,
                       int threads, Options& options) {
  HEADRACE_ASSIGN(const auto loader, start(source, mode, threads, options));
  const auto begin = Clock::now() + std::chrono::seconds(1);  // memory comes, caches fill
  const auto stop = begin + std::chrono::duration<double>(std::stod(options["seconds"]));
  uint64_t images = 0;
  for (bool counts = false; Clock::now() < stop;) {
    std::unique_ptr<Batch> batch;
    HEADRACE_ASSIGN(const Engine::Next what, loader->next(batch, 1000));
    if (what != Engine::Next::kBatch) continue;
    if (counts) images += batch->indices.size();
    counts = counts || Clock::now() >= begin;
  }
  return static_cast<double>(images) / std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Took {
  double wall = 0;  // seconds
  double cpu = 0;   // of all threads of the process
};

double process_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// What so many batches take.
Result<Took> take(Loader& loader, int batches) {
  const auto begin = Clock::now();
  const double cpu = process_seconds();
  for (int n = 0; n < batches;) {
    std::unique_ptr<Batch> batch;
    HEADRACE_ASSIGN(const Engine::Next what, loader.next(batch, 1000));
    n += what == Engine::Next::kBatch ? 1 : 0;
  }
  return Took{std::chrono::duration<double>(Clock::now() - begin).count(), process_seconds() - cpu};
}

// The median, and between what it lies in 95 of 100 cases: by the order of the values alone,
// whatever their distribution.
struct Median {
  double value = 0, from = 0, to = 0;
};

Median median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const auto at = [&](double rank) {
    return values[static_cast<size_t>(std::clamp(rank, 0.0, n - 1))];
  };
  const double half = 0.98 * std::sqrt(n);  // 1.96 standard deviations of a fair coin
  return {at(n / 2), at(std::floor(n / 2 - half)), at(std::ceil(n / 2 + half))};
}

// Of each pair, what it took with spans over what it took without.
Result<std::pair<Median, Median>> compare_tracing(const std::shared_ptr<const Source>& source,
                                                  const std::string& mode, int threads,
                                                  Options& options) {
  HEADRACE_ASSIGN(const auto loader, start(source, mode, threads, options));
  const int batches = std::stoi(options["pair"]);
  HEADRACE_TRY(take(*loader, 8 * batches).status());  // memory comes, caches fill
  std::vector<double> wall, cpu;
  for (int round = 0; round < std::stoi(options["rounds"]); ++round) {
    Took took[2];  // off, on
    for (const int turn : {0, 1}) {
      const bool on = (turn + round) % 2 == 1;
      set_tracing(on);
      // What is ready was made before; it is taken first.
      HEADRACE_TRY(take(*loader, batches / 2).status());
      HEADRACE_ASSIGN(took[on ? 1 : 0], take(*loader, batches));
    }
    set_tracing(false);
    collect_spans();
    wall.push_back(took[1].wall / took[0].wall);
    cpu.push_back(took[1].cpu / took[0].cpu);
  }
  return std::pair(median_of(std::move(wall)), median_of(std::move(cpu)));
}

int main_of(int argc, char** argv) {
  Options options{{"threads", "1,2"}, {"seconds", "3"},  {"mode", "f32,u8"}, {"batch", "64"},
                  {"trace", "off"},   {"rounds", "300"}, {"pair", "8"}};
  const std::vector<std::string> urls = read_arguments(argc, argv, options);
  set_tracing(options["trace"] == "on");
  const auto opened = open_source(urls);
  if (!opened.ok()) {
    std::fprintf(stderr,
                 "%s\nusage: loader_loop SHARDS... [threads=1,2] [seconds=3] "
                 "[mode=f32,u8] [batch=64] [trace=off|on|both]\n",
                 opened.status().text().c_str());
    return 2;
  }
  for (const auto& threads : pieces(options["threads"]))
    for (const auto& mode : pieces(options["mode"])) {
      if (options["trace"] == "both") {
        const auto cost = compare_tracing(opened.value().source, mode, std::stoi(threads), options);
        if (!cost.ok()) {
          std::fprintf(stderr, "%s\n", cost.status().text().c_str());
          return 1;
        }
        const auto& [wall, cpu] = cost.value();
        std::printf(
            "threads %s  mode %-4s  with spans / without, median of %s pairs (95 %%): time %.4f "
            "(%.4f to %.4f)  processor time %.4f (%.4f to %.4f)\n",
            threads.c_str(), mode.c_str(), options["rounds"].c_str(), wall.value, wall.from,
            wall.to, cpu.value, cpu.from, cpu.to);
        std::fflush(stdout);
        continue;
      }
      const auto rate = measure(opened.value().source, mode, std::stoi(threads), options);
      if (!rate.ok()) {
        std::fprintf(stderr, "%s\n", rate.status().text().c_str());
        return 1;
      }
      std::printf("threads %s  mode %-4s  loader  %8.1f images/s\n", threads.c_str(), mode.c_str(),
                  rate.value());
      std::fflush(stdout);
    }
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::main_of(argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
//
// The whole loader without Python: shards through plan, engine, decode and batches of 64, handed
// to a consumer that does nothing.  Beside jpeg_loop it shows what the loader costs, and how both
// grow with threads.
//
//   loader_loop SHARDS… [threads=1,2] [seconds=3] [mode=f32,u8] [batch=64] [trace=off]
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "arguments.h"
#include "loader/loader.h"
#include "open/open.h"
#include "trace/spans.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

FieldRequest image_field(const std::string& mode) {
  FieldRequest image{.output = "image", .field = "jpg", .what = "image"};
  image.steps.push_back({"random_resized_crop", Params({{"size", int64_t{224}}})});
  image.steps.push_back({"random_flip", {}});
  if (mode != "u8")
    image.steps.push_back(
        {"normalize", Params({{"mean", std::vector<double>{0.485, 0.456, 0.406}},
                              {"std", std::vector<double>{0.229, 0.224, 0.225}}})});
  return image;
}

Result<double> measure(const std::shared_ptr<const Source>& source, const std::string& mode,
                       int threads, Options& options) {
  LoaderOptions o;
  o.threads = threads;
  o.plan.seed = 1;
  o.plan.cut.batch = std::stoull(options["batch"]);
  HEADRACE_ASSIGN(const auto loader, Loader::make({{"", source, {image_field(mode)}}}, o));
  HEADRACE_TRY(loader->begin({0, 0}, true, uint64_t{1} << 40));
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

int main_of(int argc, char** argv) {
  Options options{
      {"threads", "1,2"}, {"seconds", "3"}, {"mode", "f32,u8"}, {"batch", "64"}, {"trace", "off"}};
  const std::vector<std::string> urls = read_arguments(argc, argv, options);
  set_tracing(options["trace"] == "on");
  const auto opened = open_source(urls);
  if (!opened.ok()) {
    std::fprintf(stderr,
                 "%s\nusage: loader_loop SHARDS... [threads=1,2] [seconds=3] "
                 "[mode=f32,u8] [batch=64]\n",
                 opened.status().text().c_str());
    return 2;
  }
  for (const auto& threads : pieces(options["threads"]))
    for (const auto& mode : pieces(options["mode"])) {
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

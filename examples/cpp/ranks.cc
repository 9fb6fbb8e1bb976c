// SPDX-License-Identifier: Apache-2.0
//
// Loads shards on several ranks (threads here, processes on a cluster), stops in the middle of
// the epoch, goes on with another number of ranks, and checks that every sample came once.
//
//   ranks "train-{0000..0007}.tar" [ranks before] [ranks after]
#include <headrace/headrace.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kGlobalBatch = 24;

hr::Loader make_loader(const hr::Dataset& data, uint32_t rank, uint32_t world) {
  const hr::Fields fields{
      {"image", hr::image("jpg").random_resized_crop(64).random_flip().normalize(hr::kImageNet)},
      {"label", hr::scalar("cls")}};
  hr::LoaderOptions options;
  options.order = {.batch_size = kGlobalBatch / world,
                   .seed = 7,
                   .tail = "keep",
                   .rank = rank,
                   .world_size = world};
  options.threads = 1;
  return hr::Loader(data, fields, options);
}

// Every rank takes up to `most` batches; counts the samples and returns the state of rank 0.
std::string run(const hr::Dataset& data, uint32_t world, const std::string& state, uint64_t most,
                std::map<int64_t, int>& seen) {
  std::mutex mu;
  std::string after;
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < world; ++rank)
    ranks.emplace_back([&, rank] {
      hr::Loader loader = make_loader(data, rank, world);
      if (!state.empty()) loader.load(state);
      loader.begin();
      for (uint64_t step = 0; step < most; ++step) {
        const auto batch = loader.next();
        if (!batch) break;
        const hr::Array& image = (*batch)["image"].values;
        const std::lock_guard lock(mu);
        if (image.shape.size() != 4 || image.dtype != "f32") std::abort();
        for (const int64_t i : batch->indices) ++seen[i];
        if (rank == 0) after = batch->state;
      }
    });
  for (std::thread& t : ranks) t.join();
  return after;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ranks URL [ranks before] [ranks after]\n");
    return 2;
  }
  const uint32_t before = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 2;
  const uint32_t after = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : 3;
  const hr::Dataset data = hr::open(argv[1]);
  std::printf("%llu samples; fields:", static_cast<unsigned long long>(data.size()));
  for (const auto& f : data.fields()) std::printf(" %s (%s)", f.name.c_str(), f.kind.c_str());
  hr::Plan plan(
      data, {.batch_size = kGlobalBatch / before, .seed = 7, .tail = "keep", .world_size = before});
  std::printf("\n%llu steps an epoch; the first sample of rank 0 is %lld\n",
              static_cast<unsigned long long>(plan.steps()),
              static_cast<long long>(plan.step(0, 0).at(0)));

  std::map<int64_t, int> seen;
  const std::string state = run(data, before, "", plan.steps() / 2, seen);
  std::printf("%u ranks took %zu samples; state: %s\n", before, seen.size(), state.c_str());
  run(data, after, state, ~uint64_t{0}, seen);
  size_t wrong = data.size() - seen.size();
  for (const auto& [sample, times] : seen) wrong += times != 1;
  std::printf("%u ranks took the rest: %zu samples, %zu of them not exactly once\n", after,
              seen.size(), wrong);
  return wrong == 0 ? 0 : 1;
} catch (const hr::Error& e) {
  std::fprintf(stderr, "error: %s\n", e.what());
  return 1;
}

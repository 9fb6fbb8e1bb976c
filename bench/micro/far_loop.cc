// SPDX-License-Identifier: Apache-2.0
//
// The loader over storage that is far away: a store that completes any number of reads at once,
// each after a latency and the time its bytes take.  Tar shards of 100 KB values, nothing to
// decode.  Prints samples/s with and without latency, by sample ranges and by whole runs, and the
// share of a limited bandwidth that is used.
//
//   far_loop [samples=20000] [bytes=100000] [latency_ms=50] [threads=8] [batch=16,64,256]
//            [order=pool,none] [read=ranges,runs] [budget_mib=1024] [rate_mb=100] [rounds=3]
//            [limit_mb=0]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "arguments.h"
#include "format/registry.h"
#include "loader/loader.h"
#include "open/open.h"
#include "storage/memory.h"
#include "storage/test_stores.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kShardSamples = 1000;

// Every shard is one and the same file in memory.
class OneShard final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void read(std::span<ReadRequest> requests) const override {
    for (ReadRequest& r : requests) r.path = "shard";
    inner().read(requests);
  }
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override {
    const std::string name = "shard";
    std::vector<Result<FileInfo>> out;
    for (const std::string& path : paths) {
      Result<FileInfo> info = inner().stat(name);
      if (info.ok()) info.value().path = path;
      out.push_back(std::move(info));
    }
    return out;
  }
  std::optional<Pin> pin(std::string_view, uint64_t, uint64_t) const override {
    return std::nullopt;
  }
};

Result<std::shared_ptr<const Store>> make_shard(uint64_t samples, uint64_t bytes) {
  std::vector<std::byte> out;
  HEADRACE_ASSIGN(const Format* tar, find_format("tar"));
  ShardOutput output{.file = memory_sink(out), .samples = samples};
  output.schema = {{.name = "bin", .kind = Kind::kBytes}};
  HEADRACE_ASSIGN(const std::unique_ptr<Writer> writer, tar->create(std::move(output)));
  std::string value(bytes, 'x');
  for (uint64_t i = 0; i < samples; ++i) {
    const std::string key = std::to_string(1'000'000 + i);
    std::copy(key.begin(), key.end(), value.begin());
    const std::vector<RecordValue> values{{"bin", Kind::kBytes, Storage::kExtent, as_bytes(value)}};
    HEADRACE_TRY(writer->append({key, values}));
  }
  HEADRACE_TRY(writer->finish());
  auto memory = std::make_shared<MemoryStore>();
  memory->put("shard", std::move(out));
  return std::shared_ptr<const Store>(std::make_shared<OneShard>(memory));
}

struct Way {
  uint64_t batch;
  std::string order, read;
};

struct Measured {
  double samples_per_second = 0;
  EngineStats stats;
};

// One epoch, timed from the first batch on.
Result<Measured> measure(const std::shared_ptr<const Store>& store, const Way& way,
                         Options& options) {
  std::vector<std::string> urls;
  const uint64_t shards = std::stoull(options["samples"]) / kShardSamples;
  for (uint64_t k = 0; k < shards; ++k) urls.push_back("far/" + std::to_string(1000 + k) + ".tar");
  OpenOptions open;
  open.store = store;
  HEADRACE_ASSIGN(const Opened opened, open_source(urls, open));
  LoaderOptions o;
  o.threads = std::stoi(options["threads"]);
  o.memory_budget_bytes = std::stoull(options["budget_mib"]) << 20;
  o.plan.seed = 1;
  o.plan.cut.batch = way.batch;
  o.plan.shuffle = way.order == "pool" ? Shuffle::kPool : Shuffle::kNone;
  o.read_runs = way.read == "runs";
  FieldRequest field{.output = "x", .field = "bin", .what = "bytes"};
  HEADRACE_ASSIGN(const auto loader, Loader::make({{"", opened.source, {field}}}, o));
  HEADRACE_TRY(loader->begin({0, 0}, false, 1));
  Measured out;
  uint64_t samples = 0;
  Clock::time_point begin;
  while (true) {
    std::unique_ptr<Batch> batch;
    HEADRACE_ASSIGN(const Engine::Next outcome, loader->next(batch, 60000));
    if (outcome == Engine::Next::kTimeout) return internal("nothing came for a minute");
    if (outcome == Engine::Next::kEnd) break;
    if (begin == Clock::time_point())
      begin = Clock::now();
    else
      samples += batch->indices.size();
  }
  out.samples_per_second =
      static_cast<double>(samples) / std::chrono::duration<double>(Clock::now() - begin).count();
  out.stats = loader->stats();
  return out;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Status run(Options& options) {
  HEADRACE_ASSIGN(const std::shared_ptr<const Store> shard,
                  make_shard(kShardSamples, std::stoull(options["bytes"])));
  const uint64_t rate = std::stoull(options["rate_mb"]) * 1'000'000;
  const uint64_t limit = std::stoull(options["limit_mb"]) * 1'000'000;
  const auto far = [&](int64_t ms) {
    return std::make_shared<LatencyStore>(shard,
                                          LatencyOptions{.latency = std::chrono::milliseconds(ms),
                                                         .bytes_per_second = rate,
                                                         .total_bytes_per_second = limit});
  };
  for (const std::string& order : pieces(options["order"]))
    for (const std::string& read : pieces(options["read"]))
      for (const std::string& batch : pieces(options["batch"])) {
        const Way way{std::stoull(batch), order, read};
        std::vector<double> near, late;
        Measured last;
        for (int round = 0; round < std::stoi(options["rounds"]); ++round) {
          HEADRACE_ASSIGN(const Measured a, measure(far(0), way, options));
          HEADRACE_ASSIGN(last, measure(far(std::stoll(options["latency_ms"])), way, options));
          near.push_back(a.samples_per_second);
          late.push_back(last.samples_per_second);
        }
        std::printf(
            "%-5s %-6s batch %4s   0 ms %8.0f/s   %s ms %8.0f/s   ratio %.2f   reads under way "
            "%4llu"
            "   read-ahead %4llu MiB   memory %4llu of %4llu MiB   reread %llu",
            order.c_str(), read.c_str(), batch.c_str(), median(near), options["latency_ms"].c_str(),
            median(late), median(late) / median(near),
            static_cast<unsigned long long>(last.stats.most_reads_under_way),
            static_cast<unsigned long long>(last.stats.read_ahead_bytes >> 20),
            static_cast<unsigned long long>(last.stats.memory_peak >> 20),
            static_cast<unsigned long long>(last.stats.memory_budget >> 20),
            static_cast<unsigned long long>(last.stats.units_reread));
        if (limit > 0)
          std::printf("   of the bandwidth %.2f",
                      median(late) * std::stod(options["bytes"]) / static_cast<double>(limit));
        std::printf("\n");
        std::fflush(stdout);
      }
  return {};
}

int main_of(int argc, char** argv) {
  Options options{{"samples", "20000"},    {"bytes", "100000"},    {"latency_ms", "50"},
                  {"threads", "8"},        {"batch", "16,64,256"}, {"order", "pool,none"},
                  {"read", "ranges,runs"}, {"budget_mib", "1024"}, {"rate_mb", "100"},
                  {"rounds", "3"},         {"limit_mb", "0"}};
  read_arguments(argc, argv, options);
  const Status status = run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.text().c_str());
  return 1;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::main_of(argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
//
// The loader over storage that is far away: a store that completes any number of reads at once,
// each after a latency and the time its bytes take.  Tar shards of 100 KB values, nothing to
// decode.  Prints samples/s with and without latency, by sample ranges and by whole runs, and the
// share of a limited bandwidth that is used.
//
// Beside it the bare loop: the same store, as many bytes under way as the loader had, and nothing
// else but what cannot be left out: of a run each value goes into memory of its own, and of a pool
// it is held until as much as a pool has came after it.  "of bare" is the loader's rate over it.
//
//   far_loop [samples=20000] [bytes=100000] [latency_ms=50] [threads=8] [batch=16,64,256]
//            [order=pool,none] [read=ranges,runs] [budget_mib=1024] [rate_mb=100] [rounds=3]
//            [limit_mb=0] [bare=1]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "arguments.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "batch/buffer_pool.h"
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

  uint64_t bytes_under_way() const {
    return stats.most_reads_under_way * stats.read.bytes / std::max<uint64_t>(1, stats.read.items);
  }
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

using Values = std::vector<SharedBuffer>;  // of one read

// Reads that came back, for the one thread of the bare loop.
class Arrivals {
 public:
  void add(Values values, Status status) {
    MutexLock lock(mu_);
    if (!status.ok()) failed_ = std::move(status);
    came_.push_back(std::move(values));
    wakes_.notify_one();
  }
  // All that came since the last call, at least one.
  Result<std::vector<Values>> wait() {
    std::vector<Values> out;
    MutexLock lock(mu_);
    while (came_.empty()) wakes_.wait(mu_);
    out.swap(came_);
    if (!failed_.ok()) return failed_;
    return out;
  }

 private:
  Mutex mu_;
  CondVar wakes_;
  std::vector<Values> came_ HEADRACE_GUARDED_BY(mu_);
  Status failed_ HEADRACE_GUARDED_BY(mu_);
};

constexpr uint64_t kRunBytes = 4 << 20;        // a block of the order
constexpr uint64_t kPoolBytes = 512ull << 20;  // what a pool holds, at least

// Samples/s of reads alone, so many bytes under way at a time.
Result<double> measure_bare(const std::shared_ptr<const Store>& store, const Way& way,
                            uint64_t bytes_under_way, Options& options) {
  const uint64_t bytes = std::stoull(options["bytes"]);
  const bool runs = way.read == "runs";
  const uint64_t values = runs ? std::max<uint64_t>(1, kRunBytes / bytes) : 1;
  const uint64_t reads = std::stoull(options["samples"]) / values;
  const uint64_t under_way = std::max<uint64_t>(1, bytes_under_way / (values * bytes));
  const uint64_t places = kShardSamples / values;  // of one shard
  const auto pool = BufferPool::make(std::stoull(options["budget_mib"]) << 19, slab_arena());
  std::deque<SharedBuffer> held;  // what a pool holds
  const uint64_t hold = way.order == "pool" ? kPoolBytes / bytes : 0;
  Arrivals arrivals;
  uint64_t sent = 0, came = 0;
  Clock::time_point begin;
  while (came < reads) {
    std::vector<ReadRequest> requests;
    for (; sent < reads && sent - came < under_way; ++sent) {
      const uint64_t place = way.order == "pool" ? Key(sent).value() % places : sent % places;
      ReadRequest& request = requests.emplace_back();
      request.path = "far/1000.tar";
      request.offset = place * values * bytes;
      request.length = values * bytes;
      Values into;
      for (uint64_t v = 0; v < values; ++v) {
        into.push_back(pool->take_later());
        request.pieces.push_back({v * bytes, bytes, std::move(*into.back())});
      }
      request.done = [&arrivals, into](ReadRequest&& done) {
        for (size_t v = 0; v < into.size(); ++v) *into[v] = std::move(done.pieces[v].into);
        arrivals.add(into, std::move(done.status));
      };
    }
    store->read(requests);
    HEADRACE_ASSIGN(const std::vector<Values> now, arrivals.wait());
    if (begin == Clock::time_point()) begin = Clock::now();
    came += now.size();
    if (runs)
      for (const Values& run : now) held.insert(held.end(), run.begin(), run.end());
    while (held.size() > hold) held.pop_front();
  }
  return static_cast<double>(reads * values) /
         std::chrono::duration<double>(Clock::now() - begin).count();
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
        const int64_t latency_ms = std::stoll(options["latency_ms"]);
        std::vector<double> near, late, bare_near, bare_late;
        // One round that is not counted: a virtual machine gives memory slowly the first time, and
        // with latency more of it is in use.
        HEADRACE_TRY(measure(far(0), way, options).status());
        HEADRACE_ASSIGN(Measured last, measure(far(latency_ms), way, options));
        for (int round = 0; round < std::stoi(options["rounds"]); ++round) {
          HEADRACE_ASSIGN(const Measured a, measure(far(0), way, options));
          HEADRACE_ASSIGN(last, measure(far(latency_ms), way, options));
          near.push_back(a.samples_per_second);
          late.push_back(last.samples_per_second);
          if (options["bare"] == "0") continue;
          HEADRACE_ASSIGN(bare_near.emplace_back(),
                          measure_bare(far(0), way, a.bytes_under_way(), options));
          HEADRACE_ASSIGN(bare_late.emplace_back(),
                          measure_bare(far(latency_ms), way, last.bytes_under_way(), options));
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
        if (!bare_near.empty())
          std::printf("   bare %.0f/s %.0f/s ratio %.2f   of bare %.2f %.2f", median(bare_near),
                      median(bare_late), median(bare_late) / median(bare_near),
                      median(near) / median(bare_near), median(late) / median(bare_late));
        std::printf("\n");
        std::fflush(stdout);
      }
  return {};
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::run_program(argc, argv,
                               {{"samples", "20000"},
                                {"bytes", "100000"},
                                {"latency_ms", "50"},
                                {"threads", "8"},
                                {"batch", "16,64,256"},
                                {"order", "pool,none"},
                                {"read", "ranges,runs"},
                                {"budget_mib", "1024"},
                                {"rate_mb", "100"},
                                {"rounds", "3"},
                                {"limit_mb", "0"},
                                {"bare", "1"}},
                               headrace::run);
}

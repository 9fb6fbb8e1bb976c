// SPDX-License-Identifier: Apache-2.0
//
// What it costs to evict one of very many shared units, and to pin and unpin one that is there.
//
//   unit_evictions [units=100000]
#include <cstdio>
#include <string>

#include "arguments.h"
#include "engine/unit_cache.h"
#include "storage/memory.h"
#include "trace/clock.h"

namespace headrace {
namespace {

// A source of units and nothing else.
class Units final : public Source {
 public:
  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return 0; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return {}; }
  Status needs(const SampleAsk&, Request&) const override { return {}; }
  const Store& store() const override { return store_; }
  std::string file_path(uint32_t) const override { return "f"; }
  std::string key(uint64_t) const override { return {}; }

 private:
  const Schema schema_;
  const Blocks blocks_;
  const MemoryStore store_;
};

int main_of(int argc, char** argv) {
  Options options{{"units", "100000"}};
  read_arguments(argc, argv, options);
  const uint64_t count = std::stoull(options["units"]);
  const Units source;
  UnitCache cache;
  const auto unit = [](uint64_t k) {
    return Unit{.file = 0, .offset = k * 64, .stored_bytes = 64, .decoded_bytes = 64};
  };
  for (uint64_t k = 0; k < count; ++k) {
    const UnitPin pin = cache.pin(source, unit(k));
    bool must_read = false;
    if (!cache.when_ready(pin.unit(), must_read, [] {})) return 1;
    pin->stored = cache.memory(64);
    cache.finish(pin.unit());
  }
  const auto each_us = [](const Stopwatch& watch, uint64_t n) {
    return static_cast<double>(watch.ns()) / 1e3 / static_cast<double>(n);
  };
  const Stopwatch pinning;
  for (uint64_t k = 0; k < count; ++k) (void)cache.pin(source, unit(k * 7919 % count));
  const double pin_us = each_us(pinning, count);
  const Stopwatch evicting;
  for (uint64_t k = 0; k < count; ++k)
    if (cache.evict(1) != 64) return 1;
  std::printf("%llu units: %.2f us an eviction, %.2f us to pin and unpin\n",
              static_cast<unsigned long long>(count), each_us(evicting, count), pin_us);
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::main_of(argc, argv);
}

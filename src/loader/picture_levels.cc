// SPDX-License-Identifier: Apache-2.0
#include "loader/picture_levels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/machine.h"
#include "base/mutex.h"
#include "base/parallel.h"

namespace headrace {
namespace {

constexpr size_t kChunk = 32;  // pictures a thread takes at a time

Status count_one(const SampleValue& value, std::vector<Levels>& counts) {
  if (value.many) {
    for (const SampleValue& each : value.values) HEADRACE_TRY(count_one(each, counts));
    return {};
  }
  if (value.dtype != DType::kU8 || value.shape.size() != 3)
    return invalid("levels are counted of u8 pictures, the channels last");
  const auto channels = static_cast<size_t>(value.shape[2]);
  if (counts.empty()) counts.resize(channels);
  if (counts.size() != channels)
    return invalid(
        fmt::format("a picture of {} channels after one of {}; choose a mode: "
                    "hr.image(f, mode=\"RGB\")",
                    channels, counts.size()));
  const Bytes pixels = value.bytes->bytes();
  for (size_t c = 0; c < channels; ++c) {
    Levels& levels = counts[c];
    for (size_t i = c; i < pixels.size(); i += channels) ++levels[static_cast<size_t>(pixels[i])];
  }
  return {};
}

void add(const std::vector<Levels>& from, std::vector<Levels>& to) {
  if (to.empty()) to.resize(from.size());
  for (size_t c = 0; c < from.size(); ++c)
    for (size_t v = 0; v < from[c].size(); ++v) to[c][v] += from[c][v];
}

Status count_samples(const Dataset& dataset, std::span<const uint64_t> samples,
                     const std::atomic<bool>* cancel, std::vector<Levels>& counts) {
  for (const uint64_t sample : samples) {
    if (cancel != nullptr && cancel->load()) return cancelled("was cancelled");
    HEADRACE_ASSIGN(const std::vector<SampleValue> values, dataset.at(sample));
    HEADRACE_TRY(count_one(values[0], counts).of_sample(sample));
  }
  return {};
}

}  // namespace

Result<std::vector<Levels>> picture_levels(const Dataset& dataset,
                                           std::span<const uint64_t> samples,
                                           const ScanOptions& options) {
  const unsigned threads =
      options.threads != 0 ? options.threads : static_cast<unsigned>(usable_cpus());
  Mutex mu;
  uint64_t done = 0;
  std::vector<Levels> total;
  const auto count = [&](size_t chunk) -> Status {
    const size_t begin = chunk * kChunk;
    const auto part = samples.subspan(begin, std::min(kChunk, samples.size() - begin));
    std::vector<Levels> counts;
    HEADRACE_TRY(count_samples(dataset, part, options.cancel, counts));
    MutexLock lock(mu);
    if (!total.empty() && !counts.empty() && counts.size() != total.size())
      return invalid("pictures of different numbers of channels; choose a mode");
    if (!counts.empty()) add(counts, total);
    done += part.size();
    if (options.progress) options.progress(done, samples.size());
    return {};
  };
  const size_t chunks = (samples.size() + kChunk - 1) / kChunk;
  if (Status status = parallel_for(chunks, threads, count); !status.ok()) return status;
  return total;
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "array/stats.h"

#include <algorithm>
#include <thread>

#include "array/pieces.h"
#include "array/stretches.h"
#include "array/unpack.h"

namespace headrace {
namespace {

// Between two calls of progress, and what waits to be put together at most.
constexpr uint64_t kWavePieces = 128;
constexpr uint64_t kWaveMoments = uint64_t{1} << 20;

struct Found {
  Status status;
  std::vector<Moments> moments;  // one, or one for each index of the axis that is kept apart
  uint64_t first = 0;            // the first of these indexes
};

// What is done to the pieces of an array.
struct Looking {
  std::optional<size_t> per;
  bool unpack = false;  // it, or another file of the variable, is packed
};

void add_up(const Array& array, const Region& region, Bytes values, const Looking& how,
            Found& out) {
  DType dtype = array.dtype;
  thread_local std::vector<std::byte> unpacked;
  if (how.unpack) {
    dtype = unpacked_dtype(array.dtype);
    unpacked.resize(values.size() / size_of(array.dtype) * size_of(dtype));
    unpack_numbers(array, values, dtype, unpacked);
    values = unpacked;
  }
  const std::optional<size_t> per = how.per;
  if (!per) return out.moments.emplace_back().add(values, dtype);
  const auto groups = static_cast<size_t>(region.size[*per]);
  out.moments.resize(groups);
  size_t run = size_of(dtype);
  for (size_t a = *per + 1; a < region.size.size(); ++a) run *= static_cast<size_t>(region.size[a]);
  for (size_t at = 0, g = 0; at < values.size(); at += run, g = (g + 1) % groups)
    out.moments[g].add(values.subspan(at, run), dtype);
}

Found look_at(const ArrayPieces& pieces, uint64_t number, const Looking& how) {
  Found out;
  Region region;
  thread_local std::vector<std::byte> dense;
  out.status = pieces.read(number, region, dense);
  if (!out.status.ok() || dense.empty()) return out;
  out.first = how.per ? static_cast<uint64_t>(region.begin[*how.per]) : 0;
  add_up(pieces.array(), region, dense, how, out);
  return out;
}

// Runs pieces [begin, end) on several threads.
void run_wave(const ArrayPieces& pieces, uint64_t begin, uint64_t end, bool unpack,
              const StatsOptions& options, std::vector<Found>& found) {
  found.assign(end - begin, {});
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    for (uint64_t i = next++; i < found.size(); i = next++) {
      if (options.cancel != nullptr && options.cancel->load())
        found[i].status = cancelled("statistics");
      else
        found[i] = look_at(pieces, begin + i, {options.per, unpack});
    }
  };
  const size_t helpers = std::min<uint64_t>(options.threads, found.size());
  std::vector<std::jthread> threads;
  for (size_t t = 1; t < helpers; ++t) threads.emplace_back(work);
  work();
}

}  // namespace

Result<std::vector<Moments>> array_stats(const ArrayDescription& description, uint32_t number,
                                         const Store& store, const StatsOptions& options) {
  if (number >= description.variables.size()) return internal("no such variable");
  const Variable& variable = description.variables[number];
  if (variable.segments.empty()) return internal("a variable without arrays");
  const size_t axes = variable.segments[0]->shape.size();
  if (options.per && *options.per >= axes) return invalid("there is no such axis to keep apart");
  HEADRACE_TRY(check_field(
      description,
      {.name = variable.name, .variables = {number}, .axes = std::vector<AxisChoice>(axes)}));
  std::vector<ArrayPieces> segments;
  uint64_t total = 0;
  for (const auto& array : variable.segments) {
    if (array->values) return unsupported("values of variable length have no statistics");
    segments.emplace_back(*array, description.files, store);
    total += segments.back().count();
  }
  const bool unpack = is_unpacked(variable);
  std::vector<Moments> out(options.per ? 0 : 1);
  std::vector<Found> found;
  uint64_t done = 0;
  uint64_t base = 0;  // of the indexes of `per`
  for (size_t s = 0; s < segments.size(); ++s) {
    const Array& array = *variable.segments[s];
    const int64_t groups = options.per ? segments[s].extent(*options.per) : 1;
    const uint64_t wave =
        std::clamp<uint64_t>(kWaveMoments / static_cast<uint64_t>(groups), 1, kWavePieces);
    if (options.per) {
      const auto extent = static_cast<uint64_t>(array.shape[*options.per]);
      if (variable.along == options.per && s > 0) base = out.size();
      out.resize(std::max<size_t>(out.size(), base + extent));
    }
    for (uint64_t at = 0; at < segments[s].count(); at += wave) {
      const uint64_t end = std::min(at + wave, segments[s].count());
      run_wave(segments[s], at, end, unpack, options, found);
      for (const Found& f : found) {
        HEADRACE_TRY(f.status);
        for (size_t g = 0; g < f.moments.size(); ++g) out[base + f.first + g].merge(f.moments[g]);
      }
      done += end - at;
      if (options.progress) options.progress(done, total);
    }
  }
  return out;
}

}  // namespace headrace

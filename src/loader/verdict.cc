// SPDX-License-Identifier: Apache-2.0
#include "loader/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace headrace {
namespace {

// A read that moves fewer bytes a second than this spends its time waiting for the first one.
constexpr double kLatencyBound = 20e6;
constexpr double kFarMs = 1;

std::map<std::string, double> numbers_of(const VerdictCounters& c, double total) {
  const double decoded = std::max(1.0, c.decode_items);
  return {{"waited_share", c.wait_s / total},
          {"samples_per_s", c.decode_items / total},
          {"compute_threads", c.compute_threads},
          {"decode_busy_share", std::min(1.0, c.decode_busy_s / (c.compute_threads * total))},
          {"decode_ms", 1000 * c.decode_busy_s / decoded},
          {"read_bytes_per_s", c.read_bytes / total},
          {"read_bytes", c.read_bytes / std::max(1.0, c.read_items)},
          {"read_latency_median_ms", c.read_latency_median_ms},
          {"read_latency_p99_ms", c.read_latency_p99_ms},
          {"reads_under_way", c.read_items * c.read_latency_median_ms / 1000 / total},
          {"most_reads_under_way", c.most_reads_under_way},
          {"read_ahead_bytes", c.read_ahead_bytes}};
}

std::optional<Verdict> function_to_blame(const VerdictCounters& c, const std::string& head,
                                         std::map<std::string, double> numbers) {
  for (const FunctionCost& f : c.functions) {
    const double of = std::max(f.field.empty() ? c.wait_s : c.decode_busy_s, 1e-9);
    if (f.seconds <= 0.5 * of) continue;
    numbers["python_s"] = f.seconds;
    numbers["python_share"] = f.seconds / of;
    if (f.field.empty())
      return Verdict{
          "python",
          fmt::format("{}; Python: the functions given to loader.map() took {:.1f} s of "
                      "{:.1f} s of waiting",
                      head, f.seconds, of),
          "Do it in the fields' own steps, which run ahead in threads, or make it cheaper",
          std::move(numbers)};
    if (f.processes > 0)
      return Verdict{"python",
                     fmt::format("{}; Python: map() on '{}' in {} processes and waiting for one "
                                 "took {:.1f} s of {:.1f} s of computing",
                                 head, f.field, f.processes, f.seconds, of),
                     "Give it more processes where processors are free, or make it cheaper",
                     std::move(numbers)};
    return Verdict{"python",
                   fmt::format("{}; Python: map() on '{}' and waiting for the GIL took {:.1f} s of "
                               "{:.1f} s of computing",
                               head, f.field, f.seconds, of),
                   "Do it in processes, .map(fn, processes=n), in the fields' own steps, or on the "
                   "batch",
                   std::move(numbers)};
  }
  return std::nullopt;
}

Verdict storage_to_blame(const std::string& head, std::map<std::string, double> n) {
  const double median = n["read_latency_median_ms"];
  const double idle = 100 * (1 - n["decode_busy_share"]);
  const std::string reads =
      fmt::format("reads of {:.0f} kB took {:.2f} ms in the median and {:.2f} ms at worst (p99)",
                  n["read_bytes"] / 1e3, median, n["read_latency_p99_ms"]);
  const std::string under_way = fmt::format("about {:.0f} at a time, at most {:.0f}",
                                            n["reads_under_way"], n["most_reads_under_way"]);
  const double rate_of_each = n["read_bytes"] / std::max(median / 1000, 1e-9);
  if (median >= kFarMs && rate_of_each < kLatencyBound)
    return {
        "storage latency",
        fmt::format("{}; storage latency: {}, {}, while the compute threads were idle {:.0f} % "
                    "of the time",
                    head, reads, under_way, idle),
        "Pack small files into shards, say shuffle=\"pool\" so that runs are read at once, give "
        "more memory_budget for reading ahead, or stage the data nearer",
        std::move(n)};
  return {"storage bandwidth",
          fmt::format("{}; storage bandwidth: {:.0f} MB/s came in all, {}, {}, while the compute "
                      "threads were idle {:.0f} % of the time",
                      head, n["read_bytes_per_s"] / 1e6, reads, under_way, idle),
          "Stage the data nearer, store it smaller, or let fewer jobs share the storage",
          std::move(n)};
}

}  // namespace

Verdict verdict_of(const VerdictCounters& c) {
  const double total = c.wait_s + c.step_s;
  if (c.batches < 2 || total <= 0) return {"unknown", "too few batches yet for a verdict", ""};
  std::map<std::string, double> numbers = numbers_of(c, total);
  const double share = 100 * numbers["waited_share"];
  if (share < 5)
    return {"model",
            fmt::format("the training step: it waited for data {:.1f} % of the time; the loader "
                        "keeps up",
                        share),
            "", std::move(numbers)};
  const std::string head =
      fmt::format("the training step waited for data {:.0f} % of the time", share);
  if (auto found = function_to_blame(c, head, numbers)) return *found;
  if (numbers["decode_busy_share"] > 0.8)
    return {"decoder",
            fmt::format("{}; the decoder: {:.0f} compute threads were busy {:.0f} % of the time, "
                        "{:.2f} ms a sample",
                        head, c.compute_threads, 100 * numbers["decode_busy_share"],
                        numbers["decode_ms"]),
            "Give it more cores, store smaller pictures, or decode fewer pixels",
            std::move(numbers)};
  return storage_to_blame(head, std::move(numbers));
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Why is it slow: from the counters to a sentence.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace headrace {

// A function of the user's, and the seconds spent in it and waiting to call it.
struct FunctionCost {
  std::string field;  // "": of whole batches
  double seconds = 0;
  int processes = 0;  // that it runs in; 0: on the threads
};

// What was counted since the loader was made.
struct VerdictCounters {
  uint64_t batches = 0;           // that the consumer received
  double wait_s = 0, step_s = 0;  // in next(), and in the consumer's loop
  double decode_items = 0, decode_busy_s = 0;
  double read_items = 0, read_bytes = 0;
  double read_latency_median_ms = 0, read_latency_p99_ms = 0;
  double most_reads_under_way = 0, read_ahead_bytes = 0;
  double compute_threads = 1;
  std::vector<FunctionCost> functions = {};
};

struct Verdict {
  // "model", "python" (a function), "decoder", "storage latency", "storage bandwidth", "unknown"
  std::string cause;
  std::string finding;
  std::string advice;  // "": none
  std::map<std::string, double> numbers = {};
  std::string text() const { return advice.empty() ? finding : finding + ". " + advice; }
};

// Rates are of the time the consumer spent in its epochs: pauses between them are nobody's fault.
// Reads complete by themselves, many at a time: how many were under way follows from how often and
// how long (Little's law), not from the time a thread was busy with them.
Verdict verdict_of(const VerdictCounters& counters);

}  // namespace headrace

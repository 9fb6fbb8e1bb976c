// SPDX-License-Identifier: Apache-2.0
//
// What a loader counted, and what it replaced.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hr {

struct StageStats {
  uint64_t items = 0, bytes = 0;
  double busy_s = 0, wait_input_s = 0, wait_room_s = 0;
};

struct Stats {
  StageStats plan, resolve, read, decode, pack, deliver;
  // From request to completion; reads complete by themselves, many at a time.
  double read_latency_median_ms = 0, read_latency_p99_ms = 0;
  uint64_t reads_under_way = 0, most_reads_under_way = 0;
  uint64_t read_ahead_bytes = 0;
  uint64_t memory_used = 0, memory_peak = 0, memory_budget = 0;
  uint64_t units_reread = 0;
  uint64_t damaged = 0;  // values that were damaged and taken all the same (strict=false)
  int compute_threads = 0, io_threads = 0;
};

// A sample that was replaced, and why.
struct BadSample {
  uint64_t sample = 0;
  uint32_t source = 0;  // of a blend
  uint64_t epoch = 0;
  std::string file;
  int64_t offset = -1;
  std::string key;
  std::string cause;
};

// What holds the loop back: a sentence, and the numbers that show it.
struct Verdict {
  // "model", "decoder", "storage latency", "storage bandwidth" or "unknown"
  std::string cause;
  std::string text;    // the finding and the advice
  std::string advice;  // "": none
  std::map<std::string, double> numbers;
};

}  // namespace hr

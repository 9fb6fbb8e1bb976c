// SPDX-License-Identifier: Apache-2.0
#include "trace/chrome_json.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iterator>
#include <map>

#include "base/json.h"

namespace headrace {
namespace {

// Nanoseconds as microseconds, none lost.
std::string microseconds(uint64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::string arguments_of(const SpanRecord& s) {
  if (s.batch == kNoBatch) return fmt::format(R"({{"bytes":{}}})", s.bytes);
  return fmt::format(R"({{"batch":{},"bytes":{}}})", s.batch, s.bytes);
}

class ChromeEvents {
 public:
  void name(std::string_view what, uint64_t thread_id, std::string_view name) {
    add(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                    pid_, thread_id, json_quoted(name)));
  }

  void span(const SpanRecord& s) {
    add(fmt::format(R"({{"name":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{}}})",
                    name_of(s.stage), microseconds(s.begin_ns), microseconds(length(s)), pid_,
                    s.thread_id, arguments_of(s)));
  }

  // A begin and an end that the id ties together.
  void overlapping_span(const SpanRecord& s) {
    ++id_;
    add(fmt::format(
        R"({{"name":"{0}","cat":"{0}","ph":"b","id":{1},"ts":{2},"pid":{3},"tid":{4},"args":{5}}})",
        name_of(s.stage), id_, microseconds(s.begin_ns), pid_, s.thread_id, arguments_of(s)));
    add(fmt::format(
        R"({{"name":"{0}","cat":"{0}","ph":"e","id":{1},"ts":{2},"pid":{3},"tid":{4}}})",
        name_of(s.stage), id_, microseconds(s.begin_ns + length(s)), pid_, s.thread_id));
  }

  std::string finish() && { return std::move(text_) + "\n]}\n"; }

 private:
  static uint64_t length(const SpanRecord& s) {
    return s.end_ns > s.begin_ns ? s.end_ns - s.begin_ns : 0;
  }
  void add(std::string_view event) {
    text_ += is_first_ ? "\n" : ",\n";
    text_ += event;
    is_first_ = false;
  }

  const pid_t pid_ = getpid();
  uint64_t id_ = 0;
  bool is_first_ = true;
  std::string text_ = R"({"displayTimeUnit":"ns","traceEvents":[)";
};

}  // namespace

std::string chrome_json(std::span<const SpanRecord> spans, std::string_view process) {
  ChromeEvents events;
  std::map<uint64_t, std::string_view> threads;
  for (const SpanRecord& s : spans) threads[s.thread_id] = s.thread;
  events.name("process_name", 0, process);
  for (const auto& [id, name] : threads) events.name("thread_name", id, name);
  for (const SpanRecord& s : spans)
    if (s.overlaps)
      events.overlapping_span(s);
    else
      events.span(s);
  return std::move(events).finish();
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Spans recorded from begin to end, as text for Perfetto; the verdict over the counters.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "loader/verdict.h"
#include "trace/chrome_json.h"
#include "trace/clock.h"
#include "trace/spans.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// Of the trace that is being recorded; under the GIL.
uint64_t lost_before = 0;
uint64_t began_ns = 0;

void start_trace() {
  collect_spans();  // those of an earlier one
  lost_before = lost_spans();
  began_ns = steady_ns();
  set_tracing(true);
}

std::pair<std::string, uint64_t> finish_trace() {
  set_tracing(false);
  const uint64_t lost = lost_before, began = began_ns;
  nb::gil_scoped_release release;
  std::vector<SpanRecord> spans = collect_spans();
  std::erase_if(spans, [began](const SpanRecord& span) { return span.begin_ns < began; });
  return {chrome_json(spans), lost_spans() - lost};
}

std::tuple<std::string, std::string, std::string, std::map<std::string, double>> verdict(
    uint64_t batches, double wait_s, double step_s, double decode_items, double decode_busy_s,
    double read_items, double read_bytes, double read_latency_median_ms, double read_latency_p99_ms,
    double most_reads_under_way, double read_ahead_bytes, double compute_threads,
    const std::vector<std::tuple<std::string, double, int>>& functions) {
  VerdictCounters c{batches,
                    wait_s,
                    step_s,
                    decode_items,
                    decode_busy_s,
                    read_items,
                    read_bytes,
                    read_latency_median_ms,
                    read_latency_p99_ms,
                    most_reads_under_way,
                    read_ahead_bytes,
                    compute_threads};
  for (const auto& [field, seconds, processes] : functions)
    c.functions.push_back({field, seconds, processes});
  Verdict v = verdict_of(c);
  return {v.cause, v.finding, v.advice, std::move(v.numbers)};
}

}  // namespace

void bind_trace(nb::module_& m) {
  m.def("verdict", &verdict, nb::kw_only(), nb::arg("batches"), nb::arg("wait_s"),
        nb::arg("step_s"), nb::arg("decode_items"), nb::arg("decode_busy_s"), nb::arg("read_items"),
        nb::arg("read_bytes"), nb::arg("read_latency_median_ms"), nb::arg("read_latency_p99_ms"),
        nb::arg("most_reads_under_way"), nb::arg("read_ahead_bytes"), nb::arg("compute_threads"),
        nb::arg("functions"),
        "(cause, finding, advice, numbers); functions: (field, seconds, "
        "processes), \"\" for those of batches");
  m.def("start_trace", &start_trace);
  m.def("finish_trace", &finish_trace,
        "(JSON for Perfetto, spans that were overwritten before they could be written)");
}

}  // namespace headrace::py

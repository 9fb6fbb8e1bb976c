// SPDX-License-Identifier: Apache-2.0
//
// Spans recorded from begin to end, as text for Perfetto.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "trace/chrome_json.h"
#include "trace/spans.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

uint64_t lost_before = 0;  // under the GIL

void start_trace() {
  collect_spans();  // those of an earlier one
  lost_before = lost_spans();
  set_tracing(true);
}

std::pair<std::string, uint64_t> finish_trace() {
  set_tracing(false);
  const uint64_t before = lost_before;
  nb::gil_scoped_release release;
  const std::vector<SpanRecord> spans = collect_spans();
  return {chrome_json(spans), lost_spans() - before};
}

}  // namespace

void bind_trace(nb::module_& m) {
  m.def("start_trace", &start_trace);
  m.def("finish_trace", &finish_trace,
        "(JSON for Perfetto, spans that were overwritten before they could be written)");
}

}  // namespace headrace::py

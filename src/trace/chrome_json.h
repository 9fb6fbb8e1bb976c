// SPDX-License-Identifier: Apache-2.0
//
// Spans as JSON that ui.perfetto.dev and chrome://tracing open: {"traceEvents": [...]}.  Each
// thread is a row under its name; spans that overlap (requests to a store) get rows of their own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trace/spans.h"

namespace headrace {

// `spans` as collect_spans() gives them.  Times are microseconds of the steady clock, so that the
// texts of several processes of a machine can be laid side by side.
std::string chrome_json(std::span<const SpanRecord> spans, std::string_view process = "headrace");

}  // namespace headrace

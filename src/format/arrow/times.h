// SPDX-License-Identifier: Apache-2.0
//
// Dates and times of Arrow and Parquet: the counts that they are stored as, and a notice that says
// of what.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/dtype.h"

namespace headrace {

// `what` is "timestamp", "date", "time" or "duration"; `unit` as NumPy calls it: "D", "s", "ms",
// "us" or "ns".
inline std::string time_notice(std::string_view column, std::string_view what, DType dtype,
                               std::string_view unit) {
  const std::string_view words = unit == "D"    ? "days"
                                 : unit == "s"  ? "seconds"
                                 : unit == "ms" ? "milliseconds"
                                 : unit == "us" ? "microseconds"
                                                : "nanoseconds";
  const bool is_date = what == "timestamp" || what == "date";
  const std::string_view since = is_date ? " since 1970-01-01" : what == "time" ? " of a day" : "";
  return fmt::format(
      "column '{}' of type {} is read as {}: {}{}; numpy.{}64(value, '{}') makes a {} of one",
      column, what, dtype_name(dtype), words, since, is_date ? "datetime" : "timedelta", unit,
      is_date ? "date" : "duration");
}

}  // namespace headrace

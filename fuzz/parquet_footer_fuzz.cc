// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the footer of a Parquet file: parsed, or damage at an offset within it.

#include <cstdlib>

#include "format/parquet/footer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  const auto footer = parse_parquet_footer(std::as_bytes(std::span(data, size)), 0, size);
  if (!footer.ok() && footer.status().place().offset > static_cast<int64_t>(size)) std::abort();
  return 0;
}

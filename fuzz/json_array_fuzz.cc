// SPDX-License-Identifier: Apache-2.0
//
// Any text as a list of numbers in JSON: an error, or as many numbers as its shape says.

#include <cstdlib>

#include "codec/json_array.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  const auto array = parse_json_array(std::as_bytes(std::span(data, size)));
  if (!array.ok()) return 0;
  uint64_t elements = 1;
  for (const int64_t extent : array.value().shape) {
    if (extent < 0) std::abort();
    elements *= static_cast<uint64_t>(extent);
  }
  if (array.value().shape.empty() || elements != array.value().size()) std::abort();
  return 0;
}

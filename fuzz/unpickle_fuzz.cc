// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a pickle: an error or plain values, bounded by the input.

#include <cstdlib>

#include "format/files/lists.h"
#include "format/pickle/unpickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  const Bytes in = std::as_bytes(std::span(data, size));
  const auto pickle = unpickle(in);
  if (!pickle.ok()) return 0;
  // At most one node an opcode, and items only from the stack.
  if (pickle.value().nodes.size() > size) std::abort();
  for (const auto& items : pickle.value().items)
    for (const uint32_t item : items)
      if (item >= pickle.value().nodes.size()) std::abort();
  (void)read_pickle(in, [](const ListRow&) { return Status(); }).ok();
  return 0;
}

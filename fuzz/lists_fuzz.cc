// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a list of every kind; the first byte chooses.  Each goes the whole way to a
// part, whose rows are then those that were read.

#include <cstdlib>

#include "format/files/lists.h"
#include "storage/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size == 0) return 0;
  static constexpr const char* kNames[] = {"l.txt", "l.csv", "l.tsv", "l.jsonl", "l.pkl"};
  const std::string name = kNames[data[0] % 5];
  MemoryStore store;
  store.put(name, as_text(std::as_bytes(std::span(data + 1, size - 1))));
  const auto part = index_list({store, store.stat(name).value()});
  if (!part.ok()) return 0;
  PartGroup group;
  std::string text;
  for (uint64_t g = 0; g < part.value()->groups(); ++g)
    if (!part.value()->unpack(g, group).ok()) std::abort();  // what we packed, we unpack
  for (uint64_t s = 0; s < part.value()->head().samples; ++s)
    if (!part.value()->key(s, text).ok()) std::abort();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an HDF5 file with values of variable length: references (plain, or in chunks that
// went through filters) and the global heap.  An error, or extents that lie in the file.
//
//   u8 form | u8 chain of filters | u16 values | u16 stored bytes | the file, the references first

#include <cstdlib>

#include "array/heap_fixture.h"
#include "array/heap_values.h"
#include "storage/memory.h"

namespace {

using namespace headrace;

const std::vector<FilterChain>& chains() {
  using F = ChunkFilter;
  static const std::vector<FilterChain> all = {
      {},
      {{F::kZlib}},
      {{F::kShuffle, 16}, {F::kZlib}},
      {{F::kLzf}},
      {{F::kLz4Hdf5}},
      {{F::kZstd}},
      {{F::kBlosc}},
      {{F::kShuffle, 16}, {F::kFletcher32}},
  };
  return all;
}

HeapForm form_of(uint8_t choice, uint64_t file_bytes) {
  static constexpr uint32_t kBytes[] = {8, 4, 2, 8};
  return {.address_bytes = kBytes[choice & 3],
          .size_bytes = kBytes[choice >> 2 & 3],
          .base = (choice & 16) != 0 ? 64u : 0u,
          .file_bytes = file_bytes};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHead = 6;
  if (size < kHead) return 0;
  const Bytes in = std::as_bytes(std::span(data, size));
  const Bytes file = in.subspan(kHead);
  HeapValues values;
  values.form = form_of(data[0], file.size());
  values.item_bytes = (data[0] & 32) != 0 ? 4 : 1;
  Array& array = values.references;
  array.name = "v";
  array.dtype = DType::kU8;
  array.filters = chains()[data[1] % chains().size()];
  array.shape = {load_le<uint16_t>(in.subspan(2)),
                 static_cast<int64_t>(reference_bytes(values.form))};
  array.chunk = {std::max<int64_t>(1, array.shape[0]), array.shape[1]};
  if (array.shape[0] > 0) array.places = {{0, 0, 0, load_le<uint16_t>(in.subspan(4))}};
  MemoryStore store;
  store.put("f", std::vector<std::byte>(file.begin(), file.end()));
  const auto table = read_heap_values(values, {"f"}, store, run_in_turn);
  if (!table.ok()) return 0;
  for (const ValueExtent& extent : table.value()->extents)
    if (extent.offset > file.size() || extent.bytes > file.size() - extent.offset) std::abort();
  return 0;
}

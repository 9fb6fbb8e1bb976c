// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a classic NetCDF file.  Whatever place the parser gives must lie in the file, and
// an error must name an offset within it.

#include <cstdlib>

#include "array/netcdf_classic.h"
#include "storage/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  MemoryStore store;
  store.put("f.nc", as_text(std::as_bytes(std::span(data, size))));
  const auto file = read_netcdf_classic(store, "f.nc");
  if (!file.ok()) {
    if (file.status().place().offset > static_cast<int64_t>(size)) std::abort();
    return 0;
  }
  for (const NetcdfVariable& v : file.value().variables) {
    if (v.dims.size() != v.shape.size()) std::abort();
    const uint64_t slabs = v.has_records ? static_cast<uint64_t>(v.shape[0]) : 1;
    if (slabs == 0) continue;
    if (v.begin > size || v.bytes > size - v.begin) std::abort();
    if (slabs > 1 && slabs - 1 > (size - v.begin - v.bytes) / v.stride) std::abort();
  }
  return 0;
}

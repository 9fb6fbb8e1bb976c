// SPDX-License-Identifier: Apache-2.0
#include "format/parquet/library.h"

#include <atomic>

namespace headrace {
namespace {

std::atomic<const ParquetLibrary*> the_library{nullptr};

}  // namespace

void set_parquet_library(const ParquetLibrary* library) {
  the_library.store(library);
}

Result<const ParquetLibrary*> parquet_library() {
  const ParquetLibrary* library = the_library.load();
  if (library == nullptr)
    return unsupported(
        "Parquet is read and written through pyarrow: use headrace from Python, with `pip install "
        "pyarrow`, or pack the data into another format there");
  return library;
}

}  // namespace headrace

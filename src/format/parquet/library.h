// SPDX-License-Identifier: Apache-2.0
//
// ParquetLibrary: who knows Parquet's encodings.  headrace has no decoder of its own; whoever
// embeds it brings one.  The Python module brings pyarrow, whose columns come through Arrow's C
// interface, so that the format does not know Python.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/arrow/abi.h"
#include "format/format.h"

namespace headrace {

// A column of a row group, as the footer describes it.
struct ParquetChunk {
  uint64_t offset = 0;   // in the file
  uint64_t decoded = 0;  // bytes before compression
};

struct ParquetGroup {
  uint64_t rows = 0;
  std::vector<ParquetChunk> chunks;  // one a leaf
};

struct ParquetLayout {
  ArrowOwned<ArrowSchema> schema;  // a struct of the columns
  std::vector<ParquetGroup> groups;
};

// How the columns of a new file are stored.
struct ParquetColumnOptions {
  std::string leaf;      // "name", or "name.list.element"
  bool compress = true;  // not pictures, which are compressed
  bool repeats = true;   // worth a dictionary and statistics
};

// One thread at a time.
class ParquetFileWriter {
 public:
  virtual ~ParquetFileWriter() = default;
  // A struct of the columns becomes one row group; takes the array over.
  virtual Status write(ArrowOwned<ArrowArray> group) = 0;
  // Writes the footer.  The sink stays open.
  virtual Status finish() = 0;
};

// Thread-safe.
class ParquetLibrary {
 public:
  virtual ~ParquetLibrary() = default;
  virtual Result<ParquetLayout> layout(const Store& store, const std::string& path) const = 0;
  // One leaf of the row group that has it at `offset`, as arrays of a struct with one column; no
  // more than the first `rows`, where that is not 0.
  virtual Status read(const Store& store, const std::string& path, uint64_t offset, uint32_t leaf,
                      uint64_t rows, ArrowArrayStream* out) const = 0;
  // `sink` outlives the writer.
  virtual Result<std::unique_ptr<ParquetFileWriter>> create(
      ArrowOwned<ArrowSchema> schema, const std::vector<ParquetColumnOptions>& columns,
      Sink& sink) const = 0;
};

// Thread-safe; the library must live for ever.
void set_parquet_library(const ParquetLibrary* library);
// kUnsupported where nobody brought one.
Result<const ParquetLibrary*> parquet_library();

// Samples as rows of a Parquet file.
Result<std::unique_ptr<Writer>> make_parquet_writer(ShardOutput out);
Status parquet_can_hold(const Schema& schema);

}  // namespace headrace

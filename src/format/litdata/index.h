// SPDX-License-Identifier: Apache-2.0
//
// The index.json of a LitData folder: its chunks in order, and what the leaves of an item are.
//
//   {"chunks": [{"filename": "chunk-0-0.bin", "chunk_size": items, "chunk_bytes": bytes}, …],
//    "config": {"data_format": ["int", "jpeg", …], "data_spec": a pytree of torch, as JSON text,
//               "compression": …, "compression_level": …, "encryption": …, "item_loader": …}}
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "format/columns.h"
#include "storage/store.h"

namespace headrace {

enum class LitPacking : uint8_t { kNone, kChunk, kBatch, kItem };  // what a zstd frame holds

struct LitChunk {
  std::string name;
  uint64_t items = 0;
  uint64_t bytes = 0;  // of the file; by "chunk", of what it unpacks to
};

// Immutable, hence thread-safe.
struct LitIndex {
  std::vector<LitChunk> chunks;
  std::unordered_map<std::string, size_t> named;
  std::vector<StoredColumn> columns;  // the leaves, in their order
  LitPacking packing = LitPacking::kNone;
  bool is_tokens = false;  // items are tokens and nothing else
};

// As it was found beside a chunk.
struct LitBeside {
  std::shared_ptr<const LitIndex> index;
  FileInfo file;  // before it was read
};

// Names of the leaves of a data_spec: "image", "box.0"; one leaf alone is "data".
Result<std::vector<std::string>> parse_data_spec(std::string_view text);
// How a leaf is read, by its serializer.  Pickles and unknown ones are kUnsupported by name.
Result<StoredColumn> read_lit_leaf(const std::string& name, std::string_view serializer);

// Of the folder that `chunk` lies in.  kNotFound where there is none.
Result<LitBeside> lit_index_beside(const Store& store, const std::string& chunk);
// Format::claim.
Result<std::vector<std::string>> claim_lit_folder(const Store& store, const std::string& folder,
                                                  std::span<const FileInfo> entries);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// pickle: a pickled dict of NumPy arrays and lists, as CIFAR's batches are; or a folder of them.
//
//   file        rows where all arrays and lists are equally long, more than one; else one sample
//   folder      one sample a file
//   …#rows #whole    says which is meant
//   an array by itself is the field `data`
//
// Rows have the keys of the list `__key__`, as pack writes it; else numbers.
//
// Nothing is imported or called (pickle_numpy.h).  Arrays and bytes are read where they lie;
// those that protocols 0 to 2 of Python 3 hold as text are units that open as a whole.
// A pickle that is a list of files is the format files' (pickle_list.cc).

#include <fmt/format.h>

#include <algorithm>

#include "format/files/folders.h"
#include "format/files/lists.h"
#include "format/pickle/data.h"
#include "format/pickle/writer.h"
#include "format/records.h"
#include "index/names.h"
#include "index/sidecar.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffixes[] = {".pkl", ".pickle"};

enum class Reading { kAuto, kRows, kWhole };

Result<Reading> parse_reading(std::string_view part) {
  if (part.empty()) return Reading::kAuto;
  if (part == "rows") return Reading::kRows;
  if (part == "whole") return Reading::kWhole;
  return invalid(fmt::format("'#{}' is no way to read a pickle; #rows and #whole are", part));
}

std::string without_suffix(std::string_view path) {
  const std::string lower = lower_case(path);
  for (const std::string_view suffix : kSuffixes)
    if (lower.ends_with(suffix)) path = path.substr(0, path.size() - suffix.size());
  return std::string(path);
}

bool is_pickle_name(std::string_view path) {
  return without_suffix(path).size() < path.size();
}

// One file or a folder of them.  One thread at a time.
class PickleIndexer {
 public:
  PickleIndexer(const ShardInput& shard, Reading reading, const FileTree& tree,
                PickleShapes& shapes)
      : shard_(shard),
        reading_(reading),
        tree_(tree),
        shapes_(shapes),
        part_(PartHead{.format = "pickle",
                       .shard_bytes = shard.info.is_folder ? 0 : shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .folders = tree.folders,
                       .has_files = shard.info.is_folder,
                       .has_openings = true}) {}

  Status add_folder() {
    for (const std::string& file : tree_.files) {
      if (shard_.cancelled()) return cancelled("indexing was cancelled");
      const std::string path = join_path(shard_.info.path, file);
      Status status = add_path(path, part_.add_file(file), without_suffix(file));
      if (!status.ok()) return status.in_file(path);
    }
    return {};
  }

  Status add_path(const std::string& path, uint32_t file, const std::string& name) {
    HEADRACE_ASSIGN(const Buffer bytes, shard_.store.read_all(path));
    HEADRACE_ASSIGN(Pickle pickle, unpickle(bytes.bytes(), PickleWants::kArrays));
    name_bare_array(pickle);
    return add(pickle, bytes.bytes(), file, name);
  }

  Status add(const Pickle& pickle, Bytes bytes, uint32_t file, const std::string& name) {
    PickleData data(pickle, bytes, file, shapes_, part_);
    if (reading_ == Reading::kAuto && data.has_keys()) {
      HEADRACE_ASSIGN(const uint64_t keyed, data.count_rows());
      return data.add_rows(keyed, name + '/');
    }
    if (reading_ == Reading::kWhole || (reading_ == Reading::kAuto && shard_.info.is_folder))
      return data.add_whole(name);
    const Result<uint64_t> rows = data.count_rows();
    if (reading_ == Reading::kRows && !rows.ok())
      return rows.status().with("'#rows' wants arrays and lists of one length");
    if (!rows.ok() && rows.status().code() != Code::kInvalidArgument) return rows.status();
    if (!rows.ok() || (rows.value() < 2 && reading_ == Reading::kAuto)) return data.add_whole(name);
    if (reading_ == Reading::kAuto)
      part_.head().notices.push_back(
          fmt::format("all arrays and lists have {} rows: each is a sample; write '#whole' behind "
                      "the name where the file is one sample",
                      rows.value()));
    return data.add_rows(rows.value(), name + '/');
  }

  Result<PartPointer> finish() { return part_.finish(); }

 private:
  const ShardInput& shard_;
  const Reading reading_;
  const FileTree& tree_;
  PickleShapes& shapes_;
  PartBuilder part_;
};

// Which axis of an array varies is known only at the end: else once more.
template <typename Add>
Result<PartPointer> index_data(const ShardInput& shard, Reading reading, const FileTree& tree,
                               const Add& add) {
  PickleShapes shapes;
  for (;;) {
    shapes.changed = false;
    PickleIndexer indexer(shard, reading, tree, shapes);
    if (Status s = add(indexer); !s.ok()) return s.in_file(shard.info.path);
    if (!shapes.changed) {
      Result<PartPointer> part = indexer.finish();
      return part.ok() ? part : part.status().in_file(shard.info.path);
    }
  }
}

Result<PartPointer> index_file(const ShardInput& shard, Reading reading) {
  HEADRACE_ASSIGN(const Buffer bytes, shard.store.read_all(shard.info.path));
  Result<Pickle> pickle = unpickle(bytes.bytes(), PickleWants::kArrays);
  if (!pickle.ok()) return pickle.status().in_file(shard.info.path);
  name_bare_array(pickle.value());
  // As a list of files it is read once more, and its problems are told by that reader.
  if (reading == Reading::kAuto && !is_pickle_data(pickle.value())) return index_list(shard);
  const std::string_view name =
      std::string_view(shard.info.path).substr(shard.info.path.rfind('/') + 1);
  return index_data(shard, reading, {}, [&](PickleIndexer& indexer) {
    return indexer.add(pickle.value(), bytes.bytes(), 0, without_suffix(name));
  });
}

Result<PartPointer> index(const ShardInput& shard) {
  HEADRACE_ASSIGN(const Reading reading, parse_reading(shard.info.part));
  if (!shard.info.is_folder) return index_file(shard, reading);
  FileTree tree;
  HEADRACE_TRY(list_tree(shard, tree));
  std::erase_if(tree.files, [](const std::string& file) { return !is_pickle_name(file); });
  return index_data(shard, reading, tree,
                    [](PickleIndexer& indexer) { return indexer.add_folder(); });
}

// A folder of nothing but pickles.  What pack wrote are shards of their own, with an index each.
Result<std::vector<std::string>> claim(const Store&, const std::string& folder,
                                       std::span<const FileInfo> entries) {
  std::vector<std::string> files;
  bool is_packed = false;
  for (const FileInfo& entry : entries) {
    const std::string_view name = std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
    if (name.starts_with('.') || name.ends_with(kSidecarSuffix)) continue;
    if (name == kPackManifest) {
      is_packed = true;
      continue;
    }
    if (entry.is_folder || !is_pickle_name(name)) return std::vector<std::string>();
    files.push_back(entry.path);
  }
  if (is_packed || files.empty()) return files;
  return std::vector<std::string>{folder};
}

// PROTO and its number; protocols 0 and 1 have no such mark and go by their suffix.
bool sniff(Bytes head) {
  return head.size() >= 2 && head[0] == std::byte{0x80} && head[1] >= std::byte{2} &&
         head[1] <= std::byte{5};
}

Status decode_unit(const Store&, const std::string&, const Unit& unit, Bytes stored,
                   Buffer& decoded) {
  std::string bytes;
  HEADRACE_TRY(decode_latin1(as_text(stored), bytes));
  if (bytes.size() != unit.decoded_bytes) return not_as_indexed("value").at(0);
  decoded.resize(bytes.size());
  std::copy_n(as_bytes(bytes).begin(), bytes.size(), decoded.data());
  return {};
}

}  // namespace

extern constinit const Format pickle_format{
    .name = "pickle",
    .doc =
        "a pickled dict of NumPy arrays and lists, row by row or as one sample; a folder of them; "
        "nothing is executed",
    .suffixes = kSuffixes,
    .takes_folders = true,
    .takes_parts = true,
    .holds_gaps = false,
    .guards_lengths = false,
    .sniff = sniff,
    .claim = claim,
    .index = index,
    .create = make_pickle_writer,
    .can_hold = pickle_can_hold,
    .decode_unit = decode_unit,
};

}  // namespace headrace

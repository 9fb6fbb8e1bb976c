// SPDX-License-Identifier: Apache-2.0
#include "array/array_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/hash.h"
#include "index/varint.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr std::string_view kMagic = "hrarrays";
constexpr size_t kHead = 24;
constexpr size_t kTail = 16;
constexpr size_t kStatsAtOnce = 256;
// Of an index that was made on purpose so many files are looked at: a start at scale is one read.
constexpr size_t kLookedAt = 64;

Hash128 sum_of(Bytes bytes) {
  return Hasher().add(bytes).finish();
}

void resolve_array(Tree& array, const std::string& path) {
  std::vector<std::string> files = array.texts_of("files");
  for (std::string& file : files) file = file_in(path, file);
  if (!files.empty()) array.set("files", Tree::texts(std::move(files)));
  const Tree* values = array.find("values");
  if (values == nullptr) return;
  Tree inner = *values;
  for (const std::string_view name : {"flat", "offsets", "references"})
    if (const Tree* found = values->find(name)) {
      Tree one = *found;
      resolve_array(one, path);
      inner.set(std::string(name), std::move(one));
    }
  array.set("values", std::move(inner));
}

Tree resolved_list(const Tree& arrays, const std::string& path) {
  Tree out = Tree::list();
  for (Tree array : arrays.items()) {
    resolve_array(array, path);
    out.add(std::move(array));
  }
  return out;
}

}  // namespace

std::vector<std::byte> pack_array_index(const Tree& index) {
  ByteVector out;
  put_bytes(out, as_bytes(kMagic));
  put_le(out, kArrayIndexVersion);
  put_le(out, uint32_t{0});
  put_le(out, uint64_t{0});
  pack_tree(index, out);
  store_le(MutableBytes(out).subspan(16), static_cast<uint64_t>(out.size() - kHead));
  const Hash128 sum = sum_of(out);
  put_le(out, sum.high);
  put_le(out, sum.low);
  return out;
}

Result<Tree> parse_array_index(Bytes bytes) {
  if (bytes.size() < kHead + kTail || as_text(bytes.first(kMagic.size())) != kMagic)
    return corrupt("is no index of arrays");
  const auto version = load_le<uint32_t>(bytes.subspan(8));
  if (version != kArrayIndexVersion)
    return unsupported(fmt::format("an index of arrays of version {}; this build knows {}", version,
                                   kArrayIndexVersion));
  if (load_le<uint64_t>(bytes.subspan(16)) != bytes.size() - kHead - kTail)
    return corrupt("the index of arrays is cut short");
  const Hash128 sum = sum_of(bytes.first(bytes.size() - kTail));
  const Bytes tail = bytes.last(kTail);
  if (sum.high != load_le<uint64_t>(tail) || sum.low != load_le<uint64_t>(tail.subspan(8)))
    return corrupt("the checksum of the index is wrong");
  HEADRACE_ASSIGN(Tree tree, unpack_tree(bytes.subspan(kHead, bytes.size() - kHead - kTail)));
  if (tree.find("entries") == nullptr || !tree.find("entries")->is_list())
    return corrupt("the index of arrays has no entries");
  return tree;
}

int64_t stamp_of(const FileInfo& info) {
  if (info.version.empty() || info.version == version_of(info.bytes, info.modified_ns))
    return info.modified_ns;
  return static_cast<int64_t>(Hasher().add(info.version).finish().low >> 1);
}

bool is_current(const Tree& entry, const std::string& path, const Store& store, const RunJobs& run,
                Compared compared) {
  const bool sizes_alone = compared == Compared::kSizes;
  const Tree* stamps = entry.find("stamps");
  if (stamps == nullptr) return false;
  const std::vector<std::string> names = stamps->texts_of("names");
  const std::vector<uint64_t> numbers = stamps->counts_of("numbers");
  if (names.empty() || numbers.size() != 3 * names.size()) return false;
  std::vector<size_t> asked;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_folder = numbers[3 * i + 2] != 0;
    // Folders of object stores have no time: who names an index says that it is of them.
    const bool has_time = compared == Compared::kAll || numbers[3 * i + 1] != 0;
    if (!is_folder || (!sizes_alone && has_time)) asked.push_back(i);
  }
  if (compared != Compared::kAll && asked.size() > kLookedAt) {  // some of them, the last too
    std::vector<size_t> some;
    for (size_t i = 0; i < kLookedAt; ++i)
      some.push_back(asked[i * (asked.size() - 1) / (kLookedAt - 1)]);
    asked = std::move(some);
  }
  std::atomic<bool> is_same{true};
  const size_t jobs = (asked.size() + kStatsAtOnce - 1) / kStatsAtOnce;
  const Status status = run(jobs, [&](size_t job) -> Status {
    const size_t begin = job * kStatsAtOnce;
    const size_t end = std::min(asked.size(), begin + kStatsAtOnce);
    std::vector<std::string> paths;
    for (size_t i = begin; i < end; ++i) paths.push_back(file_in(path, names[asked[i]]));
    std::vector<Result<FileInfo>> found = store.stat_all(paths);
    for (size_t i = begin; i < end; ++i) {
      const uint64_t* want = &numbers[3 * asked[i]];
      const Result<FileInfo>& info = found[i - begin];
      const bool is_absent = want[0] == 0 && want[1] == 0 && want[2] == 0;
      if (!info.ok()) {
        if (!is_absent || info.status().code() != Code::kNotFound) is_same = false;
        continue;
      }
      const FileInfo& now = info.value();
      const bool same_time =
          sizes_alone || (want[1] != 0 && static_cast<uint64_t>(stamp_of(now)) == want[1]);
      if (is_absent || now.is_folder != (want[2] != 0) || !same_time ||
          (!now.is_folder && now.bytes != want[0]))
        is_same = false;
    }
    return {};
  });
  return status.ok() && is_same;
}

std::string file_in(const std::string& path, const std::string& name) {
  if (name.empty() || name.starts_with('#')) return path + name;
  return join_path(path, name);
}

void resolve_files(Tree& entry, const std::string& path) {
  if (const Tree* arrays = entry.find("arrays")) entry.set("arrays", resolved_list(*arrays, path));
  const Tree* groups = entry.find("groups");
  if (groups == nullptr) return;
  Tree out = Tree::list();
  for (const Tree& group : groups->items()) {
    if (group.items().size() != 2) continue;
    out.add(Tree::list({group.items()[0], resolved_list(group.items()[1], path)}));
  }
  entry.set("groups", std::move(out));
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "format/mds/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "format/folder_index.h"
#include "format/mds/shard.h"
#include "storage/open_store.h"
#include "storage/sink.h"

namespace headrace {
namespace {

constexpr size_t kMostStreams = 64;  // sub-folders that are looked into

Result<uint64_t> count_of(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  const std::optional<uint64_t> count = member == nullptr ? std::nullopt : member->count();
  if (!count) return corrupt(fmt::format("has no number '{}'", name));
  return *count;
}

Status take_file(const Json& shard, std::string_view member, std::string& name, uint64_t& bytes) {
  const Json* file = shard.find(member);
  if (file == nullptr || file->is_null()) return {};
  const Json* base = file->find("basename");
  if (base == nullptr || !base->is_text())
    return corrupt(fmt::format("has no name in '{}'", member));
  if (!stays_inside(base->text()))
    return corrupt(fmt::format("names '{}', which is not inside the folder", base->text()));
  name = base->text();
  HEADRACE_ASSIGN(bytes, count_of(*file, "bytes"));
  return {};
}

Result<MdsIndexShard> parse_shard(const Json& json) {
  MdsIndexShard out;
  const Json* format = json.find("format");
  if (format == nullptr || format->text() != "mds")
    return unsupported(
        fmt::format("has the format '{}'; mds is read", format == nullptr ? "" : format->text()));
  HEADRACE_ASSIGN(const uint64_t version, count_of(json, "version"));
  if (version != kMdsVersion)
    return unsupported(fmt::format("has version {} of MDS; {} is read", version, kMdsVersion));
  HEADRACE_ASSIGN(out.samples, count_of(json, "samples"));
  HEADRACE_TRY(take_file(json, "raw_data", out.raw, out.raw_bytes));
  HEADRACE_TRY(take_file(json, "zip_data", out.zip, out.zip_bytes));
  if (out.raw.empty()) return corrupt("has no 'raw_data'");
  if (const Json* compression = json.find("compression")) out.compression = compression->text();
  return out;
}

// With or without a level behind a colon.
bool can_open(std::string_view compression) {
  const std::string_view name = compression.substr(0, compression.find(':'));
  return name == "zstd" || name == "gz";
}

// The folders in this one that are MDS data sets themselves.
Result<std::vector<std::string>> streams_in(const Store& store, std::span<const FileInfo> entries) {
  std::vector<std::string> out;
  size_t looked = 0;
  for (const FileInfo& entry : entries) {
    if (!entry.is_folder || base_name(entry.path).starts_with('.')) continue;
    if (++looked > kMostStreams) return std::vector<std::string>();
    const std::string path = join_path(entry.path, kFolderIndex);
    if (!store.stat(path).ok()) continue;
    HEADRACE_ASSIGN(const Buffer text, store.read_all(path));
    const Result<Json> json = Json::parse(as_text(text.bytes()));
    if (json.ok() && is_mds_index(json.value())) out.emplace_back(base_name(entry.path));
  }
  return out;
}

// Without an index.json: shards of their own may do; several data sets are none.
Status refuse_without_index(const Store& store, const std::string& folder,
                            std::span<const FileInfo> entries) {
  for (const FileInfo& entry : entries)
    if (entry.path.ends_with(".mds.zstd") || entry.path.ends_with(".mds.gz"))
      return not_found(fmt::format("'{}' is there and no {}, which says how large the compressed "
                                   "shards are and which there must be",
                                   base_name(entry.path), kFolderIndex))
          .in_file(folder);
  HEADRACE_ASSIGN(const std::vector<std::string> streams, streams_in(store, entries));
  if (streams.empty()) return {};
  std::string names;
  for (const std::string& stream : streams) names.append(names.empty() ? "" : ", ").append(stream);
  return invalid(fmt::format("the folder holds {} MDS data set{}: {}; open one of them: {}/{}",
                             streams.size(), streams.size() == 1 ? "" : "s", names, folder,
                             streams.front()))
      .in_file(folder);
}

// The file of a shard that is there: the raw one where both are.
Result<std::string> choose_file(const Store& store, const std::string& folder,
                                const MdsIndexShard& shard, size_t number,
                                const std::set<std::string, std::less<>>& there) {
  const auto has = [&](const std::string& name) {
    if (name.empty()) return false;
    return name.find('/') == std::string::npos ? there.contains(name)
                                               : store.stat(join_path(folder, name)).ok();
  };
  if (has(shard.raw)) return join_path(folder, shard.raw);
  if (!has(shard.zip))
    return not_found(fmt::format("{} names shard {} of the data set, '{}'{}, which is not there",
                                 kFolderIndex, number, shard.raw,
                                 shard.zip.empty() ? "" : fmt::format(" or '{}'", shard.zip)))
        .in_file(folder);
  if (!can_open(shard.compression))
    return unsupported(
               fmt::format("'{}' is compressed with {}; zstd and gz are read: unpack it to '{}'",
                           shard.zip, shard.compression, shard.raw))
        .in_file(folder);
  return join_path(folder, shard.zip);
}

// The columns of a shard that is there.
Result<std::vector<MdsColumn>> columns_of(const Store& store, const std::string& path) {
  Buffer bytes;
  HEADRACE_TRY(store.read_at(path, 0, 8, bytes));
  const uint64_t table_end = 4 * (uint64_t{load_le<uint32_t>(bytes.bytes())} + 2);
  const uint64_t first = load_le<uint32_t>(bytes.bytes().subspan(4));
  if (first < table_end) return corrupt("no MDS shard").in_file(path);
  HEADRACE_TRY(store.read_at(path, table_end, first - table_end, bytes));
  return parse_mds_config(as_text(bytes.bytes()));
}

}  // namespace

const MdsIndexShard* MdsIndex::find(std::string_view name) const {
  const auto it = named.find(std::string(name));
  return it == named.end() ? nullptr : &shards[it->second];
}

bool is_mds_index(const Json& json) {
  const Json* shards = json.find("shards");
  if (shards == nullptr || !shards->is_list() || json.find("version") == nullptr) return false;
  return shards->items().empty() || shards->items().front().find("format") != nullptr;
}

Result<MdsIndex> parse_mds_index(const Json& json) {
  MdsIndex out;
  if (json.find("version")->count() != kMdsVersion)
    return unsupported(
        fmt::format("version {} of MDS; {} is read", json.find("version")->text(), kMdsVersion));
  const std::vector<Json>& shards = json.find("shards")->items();
  if (shards.empty()) return corrupt("no shard is named");
  for (size_t i = 0; i < shards.size(); ++i) {
    Result<MdsIndexShard> shard = parse_shard(shards[i]);
    if (!shard.ok())
      return Status(shard.status().code(), fmt::format("shard {} {}", i, shard.status().message()));
    const MdsIndexShard& made = out.shards.emplace_back(std::move(shard).value());
    if (!out.named.emplace(made.raw, i).second ||
        (!made.zip.empty() && made.zip != made.raw && !out.named.emplace(made.zip, i).second))
      return corrupt(fmt::format("shard {} has the name '{}' of another", i, made.raw));
  }
  return out;
}

Result<std::shared_ptr<const MdsIndex>> mds_index_beside(const Store& store,
                                                         const std::string& shard) {
  static LastParsed<MdsIndex> last;
  const std::string path = index_beside(shard);
  if (!store.stat(path).ok()) return std::shared_ptr<const MdsIndex>();
  HEADRACE_ASSIGN(const Buffer text, store.read_all(path));
  bool is_other = false;
  Result<std::shared_ptr<const MdsIndex>> index =
      last.get(text.bytes(), [&is_other](std::string_view read) -> Result<MdsIndex> {
        HEADRACE_ASSIGN(const Json json, Json::parse(read));
        is_other = !is_mds_index(json);
        if (is_other) return corrupt("no index of MDS");
        return parse_mds_index(json);
      });
  if (is_other) return std::shared_ptr<const MdsIndex>();
  if (!index.ok()) return index.status().in_file(path);
  return index;
}

Result<std::vector<std::string>> claim_mds_folder(const Store& store, const std::string& folder,
                                                  std::span<const FileInfo> entries) {
  std::vector<std::string> out;
  std::set<std::string, std::less<>> there;
  bool has_shards = false;
  for (const FileInfo& entry : entries) {
    there.emplace(base_name(entry.path));
    has_shards = has_shards || entry.path.ends_with(".mds");
  }
  const std::string path = join_path(folder, kFolderIndex);
  if (!there.contains(kFolderIndex)) {
    HEADRACE_TRY(refuse_without_index(store, folder, entries));
    return out;
  }
  HEADRACE_ASSIGN(const Buffer text, store.read_all(path));
  const Result<Json> json = Json::parse(as_text(text.bytes()));
  if (!json.ok() && has_shards) return json.status().in_file(path);
  if (!json.ok() || !is_mds_index(json.value())) return out;
  const Result<MdsIndex> index = parse_mds_index(json.value());
  if (!index.ok()) return index.status().in_file(path);
  for (size_t i = 0; i < index.value().shards.size(); ++i) {
    HEADRACE_ASSIGN(std::string file,
                    choose_file(store, folder, index.value().shards[i], i, there));
    out.push_back(std::move(file));
  }
  return out;
}

Status finish_mds_folder(const std::string& folder, std::span<const WrittenShard> shards) {
  HEADRACE_ASSIGN(const OpenedUrl at, open_store(folder));
  std::string text = R"({"shards": [)";
  for (size_t i = 0; i < shards.size(); ++i) {
    const WrittenShard& shard = shards[i];
    HEADRACE_ASSIGN(const std::vector<MdsColumn> columns,
                    columns_of(*at.store, join_path(at.path, shard.name)));
    text += fmt::format(
        R"({}{{{}, "raw_data": {{"basename": {}, "bytes": {}, "hashes": {{}}}}, "samples": {}, )"
        R"("zip_data": null}})",
        i == 0 ? "\n" : ",\n", mds_config(columns), json_quoted(shard.name), shard.bytes,
        shard.samples);
  }
  text += fmt::format("\n], \"version\": {}}}\n", kMdsVersion);
  return write_url(join_path(at.path, kFolderIndex), as_bytes(text));
}

}  // namespace headrace

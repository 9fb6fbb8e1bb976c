// SPDX-License-Identifier: Apache-2.0
#include "open/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/interrupt.h"
#include "base/machine.h"
#include "base/shown_url.h"
#include "format/packed_fields.h"
#include "format/registry.h"
#include "index/manifest.h"
#include "index/names.h"
#include "open/expand.h"
#include "open/index_places.h"
#include "open/shard_indexer.h"
#include "open/source_store.h"
#include "storage/memory.h"
#include "storage/open_store.h"
#include "storage/paths.h"
#include "storage/stat_memo.h"
#include "storage/versioned.h"

namespace headrace {
namespace {

constexpr size_t kMaxNotices = 3;  // of shards; what is wrong with one is often wrong with all

// Where the files of a shard are: the shard itself, its folder, or the root that was given.
std::string place_of(const FileInfo& shard, bool has_files, const OpenOptions& options) {
  if (!has_files || shard.is_folder) return shard.path;
  return options.root.empty() ? parent_folder(shard.path) : clean_path(options.root);
}

bool may_share_units(const Format& format, const ManifestShard& shard) {
  if (!format.opens_if_compressed) return format.decode_unit != nullptr;
  return shard.block_bytes > shard.bytes;
}

// Of a shard that names files (a list, an index): is the first there?  Saying so now is better than
// at the first batch.
Status check_root(const Store& store, const Part& part, const FileInfo& list,
                  const std::string& root) {
  if (list.is_folder || !part.head().has_files || part.head().files == 0) return {};
  std::string first;
  HEADRACE_TRY(part.path(0, first));
  const std::string there = join_path(root, first);
  const Status found = store.stat(there).status();
  if (found.ok()) return {};
  if (!scheme_of(first).empty()) return found;  // which names the URL
  std::string hint = "say root=\"…\", the folder that its paths are relative to";
  if (store.stat(first).ok())
    hint = "it is there relative to the current folder: give that as root";
  else if (first.find('\\') != std::string::npos)
    hint = "its paths have backslashes: write them with '/'";
  else if (split_stem(first).extension.empty())
    hint = fmt::format(
        "if these are names without extensions, join them to the files: hr.join(images=\"FOLDER\", "
        "labels=hr.open(\"{}\", table=True), on={{\"labels\": \"COLUMN\"}})",
        list.path);
  return not_found(fmt::format("the first file that it names, '{}', is not at {}; {}", first, there,
                               hint))
      .in_file(list.path);
}

Status check_alike(const std::vector<FileInfo>& shards, const std::vector<PartPointer>& parts) {
  for (size_t i = 1; i < parts.size(); ++i)
    HEADRACE_TRY(belong_together(*parts[0], shards[0].path, *parts[i], shards[i].path));
  return {};
}

// Of a server the files are read as they were when they were opened.  Of a file system they are
// not: a time that changes (`touch`, which keeps files from being purged) would end a run.
std::shared_ptr<const VersionedStore> versions_of(const std::shared_ptr<const Store>& store,
                                                  std::string_view path) {
  if (scheme_of(path).empty()) return nullptr;
  return std::make_shared<const VersionedStore>(store);
}

// Whether two samples of the part lie in one unit that opens only as a whole, as far as its first
// group tells: a row group, a compressed chunk.
bool shares_units(const Part& part) {
  PartGroup group;
  if (!part.head().has_openings || part.head().samples < 2 || !part.unpack(0, group).ok())
    return false;
  using Unit = std::tuple<uint32_t, uint64_t, uint32_t>;  // file, offset, encoding
  std::map<Unit, size_t> seen;                            // and the sample that has it
  const size_t fields = part.head().schema.size();
  for (size_t cell = 0; cell + 1 < group.first.size(); ++cell)
    for (uint32_t v = group.first[cell]; v < group.first[cell + 1]; ++v) {
      const PartValue& value = group.values[v];
      if (value.encoding == 0) continue;
      const size_t sample = cell / fields;
      const auto known = seen.try_emplace({value.file, value.offset, value.encoding}, sample).first;
      if (known->second != sample) return true;
    }
  return false;
}

// The parts of all shards become a source.
Result<Opened> assemble(const std::vector<std::string>& urls, const std::vector<FileInfo>& shards,
                        std::vector<PartPointer> parts, std::shared_ptr<const Store> store,
                        const std::shared_ptr<const Store>& asked, const OpenOptions& options) {
  HEADRACE_TRY(check_alike(shards, parts));
  Opened opened;
  opened.format = parts[0]->head().format;
  opened.classes = parts[0]->head().classes;
  HEADRACE_ASSIGN(const Format* format, find_format(opened.format));
  std::vector<std::string> paths;
  for (const FileInfo& shard : shards)
    paths.push_back(shard.part.empty() ? shard.path : shard.path + '#' + shard.part);
  const std::vector<std::string> names = relative_names(paths, parts[0]->head().has_files);
  if (const auto versions = versions_of(store, shards[0].path)) {
    for (const FileInfo& shard : shards) versions->expect(shard);
    store = versions;
  }
  IndexedParts made{.shards = ShardTable(opened.format, shares_units(*parts[0])),
                    .schema = {},
                    .store = store,
                    .decode_unit = format->decode_unit};
  size_t noted = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const Part& part = *parts[i];
    const std::string place = place_of(shards[i], part.head().has_files, options);
    if (i == 0) HEADRACE_TRY(check_root(*store, part, shards[i], place));
    if (Status s = merge_schema(part.head().schema, made.schema); !s.ok())
      return s.in_file(shards[i].path);
    const ManifestShard row = describe_part(part, names[i]);
    const std::vector<uint32_t> blocks = block_samples(part);
    HEADRACE_TRY(made.shards.add(table_row(row, place, blocks)));
    for (const std::string& notice : part.head().notices) {
      if (++noted <= kMaxNotices)
        opened.notices.push_back(shown_urls(fmt::format("{}: {}", shards[i].path, notice)));
    }
  }
  if (noted > kMaxNotices)
    opened.notices.push_back(
        fmt::format("{}: and {} more like these", name_urls(urls), noted - kMaxNotices));
  if (made.shards.samples() == 0) return no_samples(urls, opened.notices);
  made.described =
      described_by_pack(*asked, parent_folder(shards[0].path), opened.format, made.schema);
  made.parts = std::move(parts);
  opened.source = std::make_shared<const IndexedSource>(std::move(made));
  return opened;
}

Status too_many(const std::vector<std::string>& urls, size_t missing) {
  return invalid(
      fmt::format("{} shards have no index, more than the {} that are built on the fly: run "
                  "`headrace index '{}' --to URL` once, then open with index=URL",
                  missing, kMaxImplicitShards, name_urls(urls)));
}

// What indexing reads of a server is kept for the first epoch, unless a cache keeps it anyway.
std::shared_ptr<const KeptBlocks> blocks_kept_of(const std::shared_ptr<const Store>& store,
                                                 const std::vector<std::string>& paths,
                                                 const OpenOptions& options) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  if (paths.empty() || !options.cache.folder.empty() || !store->cost(paths[0]).is_remote())
    return nullptr;
  return std::make_shared<const KeptBlocks>(store, std::min(kMost, usable_memory_bytes() / 16));
}

Result<Opened> open_by_sidecars(const std::vector<std::string>& urls,
                                const std::vector<std::string>& paths,
                                std::shared_ptr<const Store> store,
                                const std::shared_ptr<const Store>& asked,
                                const OpenOptions& options) {
  const auto kept = blocks_kept_of(store, paths, options);
  ShardIndexer indexer(asked, options, kept);
  HEADRACE_ASSIGN(const std::vector<FileInfo> shards, indexer.stat_all(paths));
  std::vector<PartPointer> parts(shards.size());
  HEADRACE_TRY(indexer.find_all_kept(shards, parts));
  const auto missing = [&parts] {
    return static_cast<size_t>(std::count(parts.begin(), parts.end(), nullptr));
  };
  uint64_t built = 0;
  if (missing() > kMaxImplicitShards) return too_many(urls, missing());
  if (missing() > 0) {
    std::unique_ptr<BuildLock> lock;
    if (options.keep_sidecars) {
      HEADRACE_ASSIGN(lock, BuildLock::acquire(shards.front().path, options.cancel));
      HEADRACE_TRY(
          indexer.find_all_kept(shards, parts));  // another process may have built them meanwhile
    }
    built = missing();
    HEADRACE_TRY(indexer.make_missing(shards, parts));
  }
  if (kept != nullptr && kept->held_bytes() > 0) store = kept;
  HEADRACE_ASSIGN(Opened opened, assemble(urls, shards, std::move(parts), store, asked, options));
  opened.shards_built = built;
  opened.shards_reused = shards.size() - built;
  const std::vector<std::string> notices = indexer.notices();
  opened.notices.insert(opened.notices.begin(), notices.begin(), notices.end());
  return opened;
}

// Times are not compared: a copy has another.  Tags are, where both the index and the data have
// one.
bool is_of_another_version(const PartHead& head, FileInfo now) {
  stamp_version(now);
  return head.modified_ns >= kVersionStamp && now.modified_ns >= kVersionStamp &&
         head.modified_ns != now.modified_ns;
}

// A shard that changed since it was indexed shows when its part is first needed: one stat then,
// none at the start.
std::function<Result<PartPointer>(size_t)> checked_loader(
    std::shared_ptr<const Store> store, std::shared_ptr<const VersionedStore> versions,
    const OpenedUrl& index, const Manifest& manifest,
    std::shared_ptr<const std::vector<std::string>> paths) {
  return [load = part_loader(index.store, index.path, manifest), store, versions,
          paths](size_t shard) -> Result<PartPointer> {
    HEADRACE_ASSIGN(PartPointer part, load(shard));
    if (part->head().has_files) return part;
    HEADRACE_ASSIGN(const FileInfo info, store->stat(split_part(*store, (*paths)[shard]).path));
    if (info.bytes != part->head().shard_bytes)
      return corrupt(fmt::format("{} bytes, the index says {}: index the data set again",
                                 info.bytes, part->head().shard_bytes))
          .in_file(info.path);
    if (is_of_another_version(part->head(), info))
      return corrupt(
                 "has changed since it was indexed (as long as before, another version): index "
                 "the data set again")
          .in_file(info.path);
    if (versions != nullptr) versions->expect(info);
    return part;
  };
}

// The parts of a small index on a server come in one request, not in two for each shard.
Status fetch_parts(const Manifest& manifest, OpenedUrl& index) {
  constexpr uint64_t kSmall = uint64_t{16} << 20;
  const std::string path = join_path(index.path, kPartsName);
  uint64_t bytes = 0;
  for (const ManifestShard& shard : manifest.shards) bytes += shard.part_bytes;
  // A stat, so that no part is read from a file that this index has replaced.
  if (index.store->cost(path).in_caller || bytes > kSmall) return index.store->stat(path).status();
  HEADRACE_ASSIGN(const Buffer all, index.store->read_all(path));
  auto held = std::make_shared<MemoryStore>();
  held->put(path, as_text(all.bytes()));
  index.store = std::move(held);
  return {};
}

// Of a server every question is a round trip: what expanding asked need not be asked again.
std::shared_ptr<const Store> asked_once(std::shared_ptr<const Store> store,
                                        const std::vector<std::string>& urls) {
  if (urls.empty() || store->cost(urls.front()).in_caller) return store;
  return std::make_shared<const StatMemo>(std::move(store));
}

Result<Opened> open_by_manifest(const std::vector<std::string>& urls,
                                const std::vector<std::string>& paths,
                                std::shared_ptr<const Store> store,
                                std::shared_ptr<const Store> asked, const OpenOptions& options) {
  HEADRACE_ASSIGN(OpenedUrl index, open_store(clean_path(options.index), options.storage));
  const std::string place = join_path(index.path, kManifestName);
  HEADRACE_ASSIGN(const Buffer bytes, index.store->read_all(place));
  Result<Manifest> parsed = parse_manifest(bytes.bytes());
  if (!parsed.ok()) return parsed.status().in_file(place);
  const Manifest& manifest = parsed.value();
  HEADRACE_TRY(fetch_parts(manifest, index));
  if (manifest.shards.size() != paths.size())
    return invalid(fmt::format("the index is of another data set: it has {} shards, {} are named",
                               manifest.shards.size(), paths.size()))
        .in_file(place);
  Opened opened;
  opened.format = manifest.format;
  opened.shards_reused = paths.size();
  HEADRACE_ASSIGN(const Format* format, find_format(opened.format));
  const bool has_files = manifest.shards.front().has_files;
  const std::vector<std::string> names = relative_names(paths, has_files);
  const auto versions = versions_of(store, paths[0]);
  if (versions != nullptr) store = versions;
  const std::string folder = parent_folder(split_part(*asked, paths[0]).path);
  if (!has_files && paths.size() <= kMaxImplicitShards && !asked->cost(paths.front()).in_caller) {
    std::vector<std::string> all = paths;
    all.push_back(join_path(folder, kPackManifest));
    (void)asked->stat_all(all);  // at once; it remembers
  }
  const auto load = checked_loader(asked, versions, index, manifest,
                                   std::make_shared<const std::vector<std::string>>(paths));
  bool shared = false;
  if (may_share_units(*format, manifest.shards.front())) {
    HEADRACE_ASSIGN(const PartPointer first, load(0));
    shared = shares_units(*first);
  }
  IndexedParts made{.shards = ShardTable(opened.format, shared),
                    .schema = manifest.schema,
                    .store = store,
                    .decode_unit = format->decode_unit};
  std::span<const uint32_t> blocks = manifest.block_samples;
  for (size_t i = 0; i < paths.size(); ++i) {
    const ManifestShard& row = manifest.shards[i];
    if (row.name != names[i])
      return invalid(fmt::format(
                         "the index is of another data set: shard {} is '{}' there and '{}' here",
                         i, row.name, names[i]))
          .in_file(place);
    FileInfo shard{.path = split_part(*store, paths[i]).path};
    if (row.has_files && format->takes_folders) {
      HEADRACE_ASSIGN(shard, store->stat(shard.path));
    }
    if (row.has_files && i == 0) {
      HEADRACE_ASSIGN(const PartPointer first, load(0));
      HEADRACE_TRY(check_root(*store, *first, shard, place_of(shard, true, options)));
      opened.classes = first->head().classes;
    }
    const std::string shard_place = place_of(shard, row.has_files, options);
    HEADRACE_TRY(made.shards.add(table_row(row, shard_place, blocks.first(row.blocks))));
    blocks = blocks.subspan(row.blocks);
  }
  if (made.shards.samples() == 0) return no_samples(urls, {});
  made.described = described_by_pack(*asked, folder, opened.format, made.schema);
  made.load = load;
  opened.source = std::make_shared<const IndexedSource>(std::move(made));
  return opened;
}

// All files that a source reads; none where they are too many.
std::vector<std::string> files_of(const IndexedSource& source) {
  std::vector<std::string> out;
  const uint64_t count = source.shards().first_file(source.shards().size());
  if (count > CacheStore::kMostExpected) return out;
  for (uint64_t f = 0; f < count; ++f) out.push_back(source.file_path(static_cast<uint32_t>(f)));
  return out;
}

// The store of the urls, with the cache around it where one is asked for.
Result<std::shared_ptr<const Store>> store_of(const std::vector<std::string>& urls,
                                              const OpenOptions& options,
                                              std::shared_ptr<const CacheStore>& cache) {
  HEADRACE_ASSIGN(std::shared_ptr<const Store> store, source_store(urls, options));
  if (options.cache.folder.empty()) return store;
  CacheOptions around = options.cache;
  around.scope = options.storage.endpoint;
  HEADRACE_ASSIGN(cache, CacheStore::make(std::move(store), around));
  return std::shared_ptr<const Store>(cache);
}

}  // namespace

Result<Opened> open_source(const std::vector<std::string>& urls, const OpenOptions& options) {
  const InterruptScope scope(options.cancel);
  std::shared_ptr<const CacheStore> cache;
  HEADRACE_ASSIGN(const std::shared_ptr<const Store> store, store_of(urls, options, cache));
  const std::shared_ptr<const Store> asked = asked_once(store, urls);
  HEADRACE_ASSIGN(std::vector<std::string> paths, expand_urls(*asked, urls, options.index.empty()));
  OpenOptions resolved = options;
  if (options.store == nullptr) {
    HEADRACE_ASSIGN(paths, absolute_paths(std::move(paths)));
    if (!options.root.empty()) {
      HEADRACE_ASSIGN(const std::vector<std::string> root,
                      absolute_paths({clean_path(options.root)}));
      resolved.root = root.front();
    }
  }
  HEADRACE_ASSIGN(Opened opened, options.index.empty()
                                     ? open_by_sidecars(urls, paths, store, asked, resolved)
                                     : open_by_manifest(urls, paths, store, asked, resolved));
  if (cache != nullptr) cache->expect_files(files_of(*opened.source));
  opened.cache = std::move(cache);
  return opened;
}

}  // namespace headrace

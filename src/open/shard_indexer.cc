// SPDX-License-Identifier: Apache-2.0
#include "open/shard_indexer.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/hash.h"
#include "base/lfs_pointer.h"
#include "base/machine.h"
#include "base/parallel.h"
#include "base/shown_url.h"
#include "index/names.h"
#include "index/sidecar.h"
#include "open/expand.h"
#include "open/index_places.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// Threads that stat and read sidecars wait more than they compute.
constexpr unsigned kWaitingThreads = 16;
constexpr size_t kWorthThreads = 64;
constexpr size_t kStatBatch = 16;
constexpr unsigned kBlocksAhead = 32;  // of all shards that are streamed at a time

// What a server answers, and what a download of it leaves, where the data are not to be had so.
bool is_web_page(Bytes head) {
  std::string_view text = as_text(head);
  text.remove_prefix(std::min(text.find_first_not_of("\xef\xbb\xbf \t\r\n"), text.size()));
  const std::string begin = lower_case(text.substr(0, 14));
  return begin == "<!doctype html" || begin.starts_with("<html");
}

// Of a server each question takes a round trip.
unsigned waiting_threads(size_t shards, bool is_far) {
  return shards < kWorthThreads && !is_far ? 1 : kWaitingThreads;
}

// Of another machine, and it says neither a tag nor a time.
bool has_no_version(const FileInfo& shard) {
  return !scheme_of(shard.path).empty() && shard.modified_ns == 0;
}

bool is_far(const Store& store, const std::string& path) {
  return !store.cost(path).in_caller;
}

// Of a shard that its bytes do not tell, because they are damaged: whose folder it lies in.
const Format* format_that_claims(const Store& store, const std::string& path) {
  const std::string folder = parent_folder(path);
  const Result<std::vector<FileInfo>> entries = store.list(folder);
  if (!entries.ok()) return nullptr;
  for (const Format* format : all_formats()) {
    if (format->claim == nullptr) continue;
    const auto shards = format->claim(store, folder, entries.value());
    if (shards.ok() && std::count(shards.value().begin(), shards.value().end(), path) > 0)
      return format;
  }
  return nullptr;
}

}  // namespace

Status belong_together(const Part& a, const std::string& a_path, const Part& b,
                       const std::string& b_path) {
  if (a.head().format != b.head().format)
    return invalid(fmt::format("one data set, two formats: {} is {}, {} is {}", a_path,
                               a.head().format, b_path, b.head().format));
  const std::vector<std::string>& mine = a.head().classes;
  const std::vector<std::string>& theirs = b.head().classes;
  if (mine == theirs) return {};
  const auto differ = std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end());
  const std::string one = differ.first == mine.end() ? "no class" : *differ.first;
  const std::string other = differ.second == theirs.end() ? "no class" : *differ.second;
  return invalid(
      fmt::format("class {} is '{}' in {} and '{}' in {}: folders of one data set need "
                  "the same class folders",
                  differ.first - mine.begin(), one, a_path, other, b_path));
}

ShardIndexer::ShardIndexer(std::shared_ptr<const Store> store, const OpenOptions& options,
                           std::shared_ptr<const KeptBlocks> kept)
    : store_(std::move(store)),
      options_(options),
      kept_(std::move(kept)),
      threads_(options.threads != 0 ? options.threads : static_cast<unsigned>(usable_cpus())),
      cache_(open_store(!options.keep_sidecars         ? std::string()
                        : options.cache.folder.empty() ? existing_cache_folder()
                                                       : index_in_cache(options.cache.folder))
                 .value()) {}

Result<std::vector<FileInfo>> ShardIndexer::stat_all(const std::vector<std::string>& paths) const {
  std::vector<FileInfo> infos(paths.size());
  if (paths.empty()) return infos;
  // A store that waits in the caller's thread is asked by several, any other all at once.
  const bool in_caller = store_->cost(paths.front()).in_caller;
  const size_t batch = in_caller ? kStatBatch : paths.size();
  const size_t batches = (paths.size() + batch - 1) / batch;
  HEADRACE_TRY(parallel_for(batches, waiting_threads(paths.size(), false), [&](size_t b) -> Status {
    const size_t begin = b * batch;
    const size_t end = std::min(paths.size(), begin + batch);
    std::vector<std::string> files;
    for (size_t i = begin; i < end; ++i) {
      NamedPart named = split_part(*store_, paths[i]);
      files.push_back(std::move(named.path));
      infos[i].part = std::move(named.part);
    }
    std::vector<Result<FileInfo>> found = store_->stat_all(files);
    for (size_t i = begin; i < end; ++i) {
      std::string part = std::move(infos[i].part);
      HEADRACE_ASSIGN(infos[i], std::move(found[i - begin]));
      infos[i].part = std::move(part);
      stamp_version(infos[i]);
    }
    return {};
  }));
  return infos;
}

uint64_t ShardIndexer::memory_left() const {
  const uint64_t used = memory_used_.load();
  return used < options_.memory_bytes ? options_.memory_bytes - used : 0;
}

PartPointer ShardIndexer::find_kept(const FileInfo& shard) {
  if (!options_.keep_sidecars || has_no_version(shard)) return nullptr;
  Result<PartPointer> part = not_found("looked for already");
  if (!looked_beside_ &&
      !has_query(shard.path))  // of a signed URL only the file itself is to be had
    part = read_sidecar(store_, sidecar_path(shard), shard, *store_, memory_left());
  if (!part.ok() && !cache_.path.empty())
    part = read_sidecar(cache_.store, cached_sidecar(cache_.path, shard), shard, *store_,
                        memory_left());
  if (!part.ok()) return nullptr;
  memory_used_ += part.value()->bytes().size();
  return part.value();
}

Status ShardIndexer::find_all_kept(const std::vector<FileInfo>& shards,
                                   std::vector<PartPointer>& parts) {
  if (shards.empty()) return {};
  const bool far = is_far(*store_, shards.front().path);
  const Status done =
      parallel_for(shards.size(), waiting_threads(shards.size(), far), [&](size_t i) {
        if (parts[i] == nullptr) parts[i] = find_kept(shards[i]);
        return Status();
      });
  // Nobody of this machine puts one beside data that are elsewhere while the others wait.
  looked_beside_ = far;
  return done;
}

// A folder is a shard of the format that claims it, else of files.
Result<const Format*> ShardIndexer::format_of_folder(const std::string& folder) const {
  HEADRACE_ASSIGN(const std::vector<FileInfo> entries, store_->list(folder));
  for (const Format* format : all_formats()) {
    if (format->claim == nullptr || !format->takes_folders) continue;
    HEADRACE_ASSIGN(const std::vector<std::string> shards, format->claim(*store_, folder, entries));
    if (!shards.empty()) return format;
  }
  return find_format("files");
}

unsigned ShardIndexer::threads_for(std::span<const FileInfo> shards) const {
  if (shards.empty() || !is_far(*store_, shards.front().path)) return threads_;
  return std::max(threads_, kWaitingThreads);
}

Result<PartPointer> ShardIndexer::make(const FileInfo& shard, size_t together) const {
  const Format* format = nullptr;
  if (!options_.format.empty()) {
    HEADRACE_ASSIGN(format, find_format(options_.format));
  } else if (shard.is_folder) {
    HEADRACE_ASSIGN(format, format_of_folder(shard.path));
  } else {
    Buffer head;
    if (shard.bytes > 0)
      HEADRACE_TRY(
          store_->read_at(shard.path, 0, std::min<uint64_t>(kSniffBytes, shard.bytes), head));
    if (is_lfs_pointer(head.bytes())) return corrupt(kLfsPointer).in_file(shard.path);
    if (is_web_page(head.bytes()))
      return corrupt(
                 "a web page (HTML) in the place of the data: a login, an error page or a list "
                 "of files; a browser shows what it says")
          .in_file(shard.path);
    Result<const Format*> guess = guess_format(head.bytes(), shard.path);
    format = guess.ok() ? guess.value() : format_that_claims(*store_, shard.path);
    if (format == nullptr) return guess.status();
  }
  if (shard.is_folder && !format->takes_folders)
    return invalid(fmt::format("is a folder; {} is a format of files", format->name))
        .in_file(shard.path);
  if (!shard.part.empty() && !format->takes_parts)
    return invalid(fmt::format("{} has no parts to choose from: leave '#{}' away", format->name,
                               shard.part))
        .in_file(shard.path);
  const auto shares = static_cast<unsigned>(std::clamp<size_t>(together, 1, 1024));
  Result<PartPointer> part =
      format->index({.store = *store_,
                     .info = shard,
                     .threads = std::max(1u, threads_ / shares),
                     .cancel = options_.cancel,
                     .blocks_ahead = std::clamp(kBlocksAhead / shares, 2u, 16u),
                     .kept = kept_.get()});
  if (!part.ok()) return part.status().in_file(shard.path);
  return part;
}

void ShardIndexer::note_once(std::string text) {
  MutexLock lock(mu_);
  if (notices_.empty()) notices_.push_back(std::move(text));
}

std::vector<std::string> ShardIndexer::notices() const {
  MutexLock lock(mu_);
  return notices_;
}

void ShardIndexer::keep(const FileInfo& shard, PartPointer& part) {
  if (!options_.keep_sidecars) return;
  const std::optional<OpenedUrl> kept = write_somewhere(shard, *part);
  if (!kept) return;
  if (part->bytes().size() > memory_left()) {
    // Kept on disk now: what exceeds the memory allowed is read from there by groups.
    if (Result<PartPointer> lean = Part::open(kept->store, kept->path, 0, part->total_bytes());
        lean.ok())
      part = lean.value();
  }
  memory_used_ += part->bytes().size();
}

std::optional<OpenedUrl> ShardIndexer::write_somewhere(const FileInfo& shard, const Part& part) {
  const bool is_remote = !scheme_of(shard.path).empty();
  // Nobody could tell later whether it has changed.
  if (has_no_version(shard)) {
    if (!shard.is_folder)
      note_once(
          fmt::format("{} has no version (no ETag, no time): its index is not kept, and is "
                      "built at every start",
                      shown_urls(shard.path)));
    return std::nullopt;
  }
  const std::string path = sidecar_path(shard);
  const Status beside =
      is_remote ? unsupported("the data are not on this machine") : write_sidecar(path, part);
  if (beside.ok()) return OpenedUrl{store_, path};
  const std::string own =
      options_.cache.folder.empty() ? std::string() : index_in_cache(options_.cache.folder);
  const bool has_own = !own.empty() && (::mkdir(own.c_str(), 0700) == 0 || errno == EEXIST) &&
                       ::access(own.c_str(), W_OK) == 0;
  const Result<std::string> cache = has_own ? own : cache_folder();
  Status cached = cache.status();
  if (has_own) {  // as the user asked for: no word about it
    const std::string kept = cached_sidecar(own, shard);
    if (write_sidecar(kept, part).ok()) return OpenedUrl{cache_.store, kept};
  }
  OpenedUrl place{cache_.store, cache.ok() ? cached_sidecar(cache.value(), shard) : ""};
  if (cache.ok()) cached = write_sidecar(place.path, part);
  if (!cached.ok()) {
    note_once(fmt::format("the index cannot be kept ({}; {}): it is built at every start",
                          beside.text(), cached.text()));
    return std::nullopt;
  }
  note_once(fmt::format("the index cannot lie beside the data ({}): it is kept in {}",
                        beside.text(), cache.value()));
  return place;
}

Status ShardIndexer::make_missing(const std::vector<FileInfo>& shards,
                                  std::vector<PartPointer>& parts) {
  std::vector<size_t> missing;
  for (size_t i = 0; i < shards.size(); ++i)
    if (parts[i] == nullptr) missing.push_back(i);
  Mutex mu;
  IndexProgress progress{.shards = missing.size()};
  const unsigned threads = threads_for(shards);
  return parallel_for(missing.size(), threads, [&](size_t m) -> Status {
    const size_t i = missing[m];
    if (options_.cancel != nullptr && options_.cancel->load())
      return cancelled("indexing was cancelled");
    HEADRACE_ASSIGN(parts[i], make(shards[i], std::min<size_t>(missing.size(), threads)));
    const uint64_t samples = parts[i]->head().samples;
    keep(shards[i], parts[i]);
    MutexLock lock(mu);
    ++progress.shards_done;
    progress.samples += samples;
    if (options_.progress) options_.progress(progress);
    return {};
  });
}

}  // namespace headrace

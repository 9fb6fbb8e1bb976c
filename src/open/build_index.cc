// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "index/manifest.h"
#include "open/expand.h"
#include "open/open.h"
#include "open/shard_indexer.h"
#include "open/source_store.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// One thread at a time; inside, shards are indexed in parallel.
class IndexBuilder {
 public:
  IndexBuilder(std::shared_ptr<const Store> store, std::vector<FileInfo> shards,
               std::vector<std::string> paths, const OpenOptions& options)
      : options_(options),
        indexer_(std::move(store), options),
        shards_(std::move(shards)),
        paths_(std::move(paths)) {
    progress_.shards = shards_.size();
  }

  // A stretch at a time: parts are made in any order, and written in theirs.
  Status run(const std::string& folder) {
    const size_t stretch = size_t{16} * indexer_.threads_for(shards_);
    for (size_t begin = 0; begin < shards_.size(); begin += stretch) {
      std::vector<PartPointer> parts(std::min(stretch, shards_.size() - begin));
      HEADRACE_TRY(make(begin, parts));
      HEADRACE_TRY(write(begin, parts, folder));
    }
    return {};
  }

  uint64_t samples() const { return progress_.samples; }
  Status finish() { return writer_->finish(); }

 private:
  Status make(size_t begin, std::vector<PartPointer>& parts) {
    Mutex mu;
    const unsigned threads = indexer_.threads_for(shards_);
    return parallel_for(parts.size(), threads, [&](size_t i) -> Status {
      if (options_.cancel != nullptr && options_.cancel->load())
        return cancelled("indexing was cancelled");
      PartPointer part = indexer_.find_kept(shards_[begin + i]);
      if (part == nullptr) {
        HEADRACE_ASSIGN(part,
                        indexer_.make(shards_[begin + i], std::min<size_t>(parts.size(), threads)));
      }
      parts[i] = part;
      MutexLock lock(mu);
      ++progress_.shards_done;
      progress_.samples += part->head().samples;
      if (options_.progress) options_.progress(progress_);
      return {};
    });
  }

  Status write(size_t begin, const std::vector<PartPointer>& parts, const std::string& folder) {
    if (writer_ == nullptr) {
      first_ = parts[0];
      names_ = relative_names(paths_, parts[0]->head().has_files);
      HEADRACE_ASSIGN(writer_,
                      IndexWriter::create(folder, parts[0]->head().format, options_.storage));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      HEADRACE_TRY(belong_together(*first_, paths_[0], *parts[i], paths_[begin + i]));
      HEADRACE_TRY(writer_->add(*parts[i], names_[begin + i]));
    }
    return {};
  }

  const OpenOptions& options_;
  ShardIndexer indexer_;
  const std::vector<FileInfo> shards_;
  const std::vector<std::string> paths_;
  PartPointer first_;
  std::vector<std::string> names_;
  std::unique_ptr<IndexWriter> writer_;
  IndexProgress progress_;
};

}  // namespace

Status build_index(const std::vector<std::string>& urls, const std::string& to,
                   const OpenOptions& options) {
  const InterruptScope scope(options.cancel);
  HEADRACE_ASSIGN(const std::shared_ptr<const Store> store, source_store(urls, options));
  HEADRACE_TRY(can_write(to));
  const std::string folder = clean_path(to);
  HEADRACE_ASSIGN(std::vector<std::string> paths, expand_urls(*store, urls));
  OpenOptions whole = options;
  whole.memory_bytes = ~uint64_t{0};  // parts are copied from memory
  HEADRACE_ASSIGN(std::vector<FileInfo> shards, ShardIndexer(store, whole).stat_all(paths));
  if (scheme_of(folder).empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return from_errno(error.value(), "make folder").in_file(folder);
  }
  IndexBuilder builder(store, std::move(shards), std::move(paths), whole);
  HEADRACE_TRY(builder.run(folder));
  if (builder.samples() == 0) return no_samples(urls, {});
  return builder.finish();
}

}  // namespace headrace

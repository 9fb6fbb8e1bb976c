// SPDX-License-Identifier: Apache-2.0
#include "storage/cache/cache.h"

#include "storage/cache/reads.h"

namespace headrace {
CacheStore::CacheStore(std::shared_ptr<const Store> inner,
                       std::shared_ptr<const CacheFolder> folder)
    : StoreWrapper(inner),
      folder_(std::move(folder)),
      reads_([inner, shared = folder_] { return std::make_unique<CacheReads>(inner, shared); }) {}

CacheStore::~CacheStore() = default;

Result<std::shared_ptr<const CacheStore>> CacheStore::make(std::shared_ptr<const Store> inner,
                                                           const CacheOptions& options) {
  HEADRACE_ASSIGN(std::unique_ptr<CacheFolder> folder, CacheFolder::open(options));
  return std::shared_ptr<const CacheStore>(new CacheStore(std::move(inner), std::move(folder)));
}

void CacheStore::expect_files(std::vector<std::string> files) const {
  if (files.size() > kMostExpected) return;
  MutexLock lock(mu_);
  files_ = std::move(files);
}

void CacheStore::read(std::span<ReadRequest> requests) const {
  reads_->read(requests);
}

bool CacheStore::read_if_resident(ReadRequest& request) const {
  return reads_->read_if_resident(request);
}

void CacheStore::cancel(const ReadGroup& group) const {
  reads_->cancel(group);
  inner().cancel(group);  // what has no version was handed on as it is
}

bool CacheStore::is_complete() const {
  std::vector<std::string> files;
  {
    MutexLock lock(mu_);
    files = files_;
  }
  return reads_->is_complete(files);
}

StoreCost CacheStore::cost(const std::string& path) const {
  StoreCost cost = inner().cost(path);
  if (!is_complete()) return cost;
  reads_->wait_in_caller();
  return {.latency_ns = 100'000, .parallel_reads = 32};
}

std::vector<Result<FileInfo>> CacheStore::stat_all(std::span<const std::string> paths) const {
  std::vector<Result<FileInfo>> out = inner().stat_all(paths);
  for (const Result<FileInfo>& info : out)
    if (info.ok()) reads_->remember(info.value());
  return out;
}

Result<ListPage> CacheStore::list_page(const std::string& folder, const std::string& after) const {
  HEADRACE_ASSIGN(ListPage page, inner().list_page(folder, after));
  for (const FileInfo& entry : page.entries) reads_->remember(entry);
  return page;
}

CacheCounts CacheStore::counts() const {
  return reads_->counts();
}

std::vector<std::string> CacheStore::take_notices() const {
  return reads_->take_notices();
}

void CacheStore::wait_until_written() const {
  reads_->wait_until_written();
}

}  // namespace headrace

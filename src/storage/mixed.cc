// SPDX-License-Identifier: Apache-2.0
#include "storage/mixed.h"

#include <utility>

#include "storage/local.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// The end of those from `begin` on whose paths have the same scheme.
template <typename T, typename PathOf>
size_t end_of_scheme(std::span<T> all, size_t begin, const PathOf& path_of) {
  const std::string scheme(scheme_of(path_of(all[begin])));
  size_t end = begin + 1;
  while (end < all.size() && scheme_of(path_of(all[end])) == scheme) ++end;
  return end;
}

constexpr std::string_view kFilePrefix = "file://";

// As the store of its scheme takes it.
std::string path_for_store(std::string_view path) {
  return std::string(path.starts_with(kFilePrefix) ? path.substr(kFilePrefix.size()) : path);
}

}  // namespace

MixedStore::MixedStore(StoreOptions options) : local_(local_store()), options_(std::move(options)) {
  options_.opening = nullptr;  // it outlives the call that opens
}

Result<std::shared_ptr<const Store>> MixedStore::store_of(std::string_view path) const {
  const std::string_view scheme = scheme_of(path);
  if (scheme.empty() || path.starts_with(kFilePrefix)) return local_;
  {
    MutexLock lock(mu_);
    const auto known = opened_.find(scheme);
    if (known != opened_.end()) return known->second;
  }
  HEADRACE_ASSIGN(OpenedUrl opened, open_store(path, options_));
  MutexLock lock(mu_);
  return opened_.try_emplace(std::string(scheme), std::move(opened.store)).first->second;
}

void MixedStore::read(std::span<ReadRequest> requests) const {
  const auto path_of = [](const ReadRequest& request) -> std::string_view { return request.path; };
  for (size_t begin = 0; begin < requests.size();) {
    const size_t end = end_of_scheme(requests, begin, path_of);
    const auto store = store_of(requests[begin].path);
    for (; !store.ok() && begin < end; ++begin)
      complete(std::move(requests[begin]), store.status());
    for (ReadRequest& request : requests.subspan(begin, end - begin))
      request.path = path_for_store(request.path);
    if (store.ok()) store.value()->read(requests.subspan(begin, end - begin));
    begin = end;
  }
}

bool MixedStore::read_if_resident(ReadRequest& request) const {
  const auto store = store_of(request.path);
  request.path = path_for_store(request.path);
  return store.ok() && store.value()->read_if_resident(request);
}

std::optional<Pin> MixedStore::pin(std::string_view path, uint64_t offset, uint64_t length) const {
  const auto store = store_of(path);
  return store.ok() ? store.value()->pin(path_for_store(path), offset, length) : std::nullopt;
}

void MixedStore::cancel(const ReadGroup& group) const {
  std::vector<std::shared_ptr<const Store>> stores;
  {
    MutexLock lock(mu_);
    for (const auto& [scheme, store] : opened_) stores.push_back(store);
  }
  for (const auto& store : stores) store->cancel(group);
}

StoreCost MixedStore::cost(const std::string& path) const {
  const auto store = store_of(path);
  return store.ok() ? store.value()->cost(path_for_store(path)) : StoreCost();
}

std::vector<Result<FileInfo>> MixedStore::stat_all(std::span<const std::string> paths) const {
  std::vector<Result<FileInfo>> out;
  out.reserve(paths.size());
  const auto path_of = [](const std::string& path) -> std::string_view { return path; };
  for (size_t begin = 0; begin < paths.size();) {
    const size_t end = end_of_scheme(paths, begin, path_of);
    const auto store = store_of(paths[begin]);
    if (!store.ok()) {
      out.insert(out.end(), end - begin, Result<FileInfo>(store.status()));
    } else {
      std::vector<std::string> own;
      for (const std::string& path : paths.subspan(begin, end - begin))
        own.push_back(path_for_store(path));
      auto found = store.value()->stat_all(own);
      for (size_t i = 0; i < found.size(); ++i) {
        // By its own name, under which it is asked for again: a cache knows it by that.
        if (found[i].ok()) found[i].value().path = paths[begin + i];
        out.push_back(std::move(found[i]));
      }
    }
    begin = end;
  }
  return out;
}

Result<ListPage> MixedStore::list_page(const std::string& folder, const std::string& after) const {
  HEADRACE_ASSIGN(const auto store, store_of(folder));
  return store->list_page(path_for_store(folder), after);
}

}  // namespace headrace

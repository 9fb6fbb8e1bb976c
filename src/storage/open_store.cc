// SPDX-License-Identifier: Apache-2.0
#include "storage/open_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/mutex.h"
#include "base/per_process.h"
#include "storage/paths.h"

namespace headrace {

#define HEADRACE_STORE(name) extern const StoreKind name##_stores;
#include "storage/stores.inc"
#undef HEADRACE_STORE

std::span<const StoreKind* const> all_stores() {
#define HEADRACE_STORE(name) &name##_stores,
  static constexpr const StoreKind* kAll[] = {
#include "storage/stores.inc"
  };
#undef HEADRACE_STORE
  return kAll;
}

namespace {

constexpr std::string_view kFile = "file";

// Thread-safe.
class OpenStores {
 public:
  std::shared_ptr<const Store> registered(std::string_view scheme) {
    MutexLock lock(mu_);
    const auto it = registered_.find(scheme);
    return it == registered_.end() ? nullptr : it->second;
  }
  void add(const std::string& scheme, std::shared_ptr<const Store> store) {
    MutexLock lock(mu_);
    registered_[scheme] = std::move(store);
  }
  void remove(const std::string& scheme) {
    std::shared_ptr<const Store> gone;  // destroyed after the lock: it may end threads
    MutexLock lock(mu_);
    const auto it = registered_.find(scheme);
    if (it == registered_.end()) return;
    gone = std::move(it->second);
    registered_.erase(it);
  }
  std::string known() {
    std::string text;
    for (const StoreKind* kind : all_stores())
      for (const std::string_view scheme : kind->schemes)
        text.append(text.empty() ? "" : ", ").append(scheme).append("://");
    MutexLock lock(mu_);
    for (const auto& [scheme, store] : registered_) text.append(", ").append(scheme).append("://");
    return text;
  }

 private:
  Mutex mu_;
  std::map<std::string, std::shared_ptr<const Store>, std::less<>> registered_
      HEADRACE_GUARDED_BY(mu_);
};

OpenStores& open_stores() {
  static const PerProcess<OpenStores> stores([] { return std::make_unique<OpenStores>(); });
  return *stores;
}

const StoreKind* find_kind(std::string_view scheme) {
  for (const StoreKind* kind : all_stores())
    if (std::find(kind->schemes.begin(), kind->schemes.end(), scheme) != kind->schemes.end())
      return kind;
  return nullptr;
}

std::string without_file(std::string_view url) {
  constexpr std::string_view kPrefix = "file://";
  return std::string(url.starts_with(kPrefix) ? url.substr(kPrefix.size()) : url);
}

// Whose the URL is: a test's own store, or a kind of the table.
struct Owner {
  std::shared_ptr<const Store> registered;
  const StoreKind* kind = nullptr;
  std::string_view scheme = {};  // where it matters
  bool operator==(const Owner&) const = default;
};

// https://name:password@host/…
bool names_password(std::string_view url) {
  const std::string_view scheme = scheme_of(url);
  if (scheme.empty()) return false;
  std::string_view authority = url.substr(scheme.size() + 3);
  authority = authority.substr(0, authority.find('/'));
  const size_t at = authority.find('@');
  return at != std::string_view::npos && authority.substr(0, at).find(':') < at;
}

Result<Owner> owner_of(std::string_view url) {
  const std::string_view scheme = scheme_of(url);
  if (names_password(url))  // and is not repeated here
    return invalid(
        fmt::format("a password in a URL ends up in logs: write {}://{} and give "
                    "hr.storage(user='name', password='...')",
                    scheme, url.substr(url.find('@') + 1)));
  if (auto store = open_stores().registered(scheme); store != nullptr)
    return Owner{.registered = std::move(store)};
  const StoreKind* kind = find_kind(scheme.empty() ? kFile : scheme);
  if (kind == nullptr)
    return unsupported(
        fmt::format("'{}': this build does not read {}://; it reads plain paths and {}", url,
                    scheme, open_stores().known()));
  return Owner{.registered = nullptr,
               .kind = kind,
               .scheme = kind->mixes_schemes ? std::string_view() : scheme};
}

}  // namespace

Result<OpenedUrl> open_store(std::string_view url, const StoreOptions& options) {
  HEADRACE_ASSIGN(Owner owner, owner_of(url));
  if (owner.registered) return OpenedUrl{std::move(owner.registered), std::string(url)};
  const std::string_view scheme = scheme_of(url);
  HEADRACE_TRY(options.validate());
  HEADRACE_ASSIGN(std::shared_ptr<const Store> store, owner.kind->make(options, scheme));
  return OpenedUrl{std::move(store),
                   scheme.empty() || scheme == kFile ? without_file(url) : std::string(url)};
}

Result<std::shared_ptr<const Store>> store_of_all(std::span<const std::string> urls,
                                                  const StoreOptions& options) {
  if (urls.empty()) return invalid("no data set is named");
  HEADRACE_ASSIGN(const Owner owner, owner_of(urls.front()));
  for (const std::string& url : urls) {
    HEADRACE_ASSIGN(const Owner other, owner_of(url));
    if (other != owner)
      return invalid(fmt::format(
          "one data set lies in one store, '{}' and '{}' are of two: open each, then mix them",
          urls.front(), url));
  }
  HEADRACE_ASSIGN(OpenedUrl opened, open_store(urls.front(), options));
  return std::move(opened.store);
}

Result<std::string> local_path(std::string_view url) {
  const std::string_view scheme = scheme_of(url);
  if (scheme.empty() || scheme == kFile) return without_file(url);
  return unsupported(
      fmt::format("'{}': this build writes local files, not {}://; give a path", url, scheme));
}

ScopedStore::ScopedStore(std::string scheme, std::shared_ptr<const Store> store)
    : scheme_(std::move(scheme)) {
  open_stores().add(scheme_, std::move(store));
}

ScopedStore::~ScopedStore() {
  open_stores().remove(scheme_);
}

}  // namespace headrace

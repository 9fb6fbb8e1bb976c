// SPDX-License-Identifier: Apache-2.0
#include "storage/open_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>

#include "base/mutex.h"
#include "base/per_process.h"
#include "storage/paths.h"
#include "storage/stat_memo.h"

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

std::atomic<OtherStores> other_stores{nullptr};

const StoreKind* find_kind(std::string_view scheme) {
  for (const StoreKind* kind : all_stores())
    if (std::find(kind->schemes.begin(), kind->schemes.end(), scheme) != kind->schemes.end())
      return kind;
  return nullptr;
}

bool is_local(std::string_view url) {
  const std::string_view scheme = scheme_of(url);
  return scheme.empty() || scheme == kFile;
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

Result<std::shared_ptr<const Store>> make_other(std::string_view url, std::string_view scheme) {
  Result<std::shared_ptr<const Store>> made = other_stores.load()(scheme);
  if (made.ok() || made.status().code() != Code::kUnsupported) return made;
  return unsupported(fmt::format("'{}': headrace does not read {}:// itself ({}), and {}", url,
                                 scheme, open_stores().known(), made.status().message()));
}

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
  if (kind == nullptr && other_stores.load() != nullptr) return Owner{.scheme = scheme};
  if (kind == nullptr)
    return unsupported(
        fmt::format("'{}': this build does not read {}://; it reads plain paths and {}", url,
                    scheme, open_stores().known()));
  return Owner{.registered = nullptr,
               .kind = kind,
               .scheme = kind->mixes_schemes ? std::string_view() : scheme};
}

// Of what is opened together, those have a store in common to whose servers the same secrets go.
std::string memo_name(const Owner& owner, const StoreOptions& options) {
  std::string name =
      fmt::format("{} {}", owner.kind == nullptr ? "other" : owner.kind->name, owner.scheme);
  const bool has_secrets =
      !options.token.empty() || !options.user.empty() || !options.headers.empty();
  if (has_secrets && options.named) name += fmt::format(" of {}", fmt::join(*options.named, " "));
  return name;
}

}  // namespace

Result<OpenedUrl> open_store(std::string_view url, const StoreOptions& options) {
  HEADRACE_ASSIGN(Owner owner, owner_of(url));
  if (owner.registered) return OpenedUrl{std::move(owner.registered), std::string(url)};
  const std::string_view scheme = scheme_of(url);
  HEADRACE_TRY(options.validate());
  const auto make = [&] {
    return owner.kind == nullptr ? make_other(url, scheme) : owner.kind->make(options, scheme);
  };
  const bool is_asked_once = options.opening != nullptr && !is_local(url);
  HEADRACE_ASSIGN(std::shared_ptr<const Store> store,
                  is_asked_once ? options.opening->store(memo_name(owner, options), make) : make());
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

namespace {

Result<const StoreKind*> writer_of(const std::string& url) {
  const StoreKind* kind = find_kind(scheme_of(url));
  if (kind != nullptr && kind->write != nullptr) return kind;
  return unsupported(
      fmt::format("'{}': this build writes plain paths and s3://, not {}://", url, scheme_of(url)));
}

}  // namespace

Status can_write(const std::string& url) {
  return is_local(url) ? Status() : writer_of(url).status();
}

Result<std::unique_ptr<Sink>> open_sink(const std::string& url, const StoreOptions& options) {
  if (is_local(url)) return file_sink(without_file(url));
  HEADRACE_ASSIGN(const StoreKind* kind, writer_of(url));
  return kind->write(options, url);
}

Status write_url(const std::string& url, Bytes data, const StoreOptions& options) {
  HEADRACE_ASSIGN(const std::unique_ptr<Sink> sink, open_sink(url, options));
  HEADRACE_TRY(sink->append(data));
  return sink->close();
}

Status remove_url(const std::string& url, const StoreOptions& options) {
  if (!is_local(url)) {
    HEADRACE_ASSIGN(const StoreKind* kind, writer_of(url));
    return kind->remove(options, url);
  }
  const std::string path = without_file(url);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return from_errno(errno, "remove").in_file(path);
}

void set_other_stores(OtherStores make) {
  other_stores.store(make);
}

ScopedStore::ScopedStore(std::string scheme, std::shared_ptr<const Store> store)
    : scheme_(std::move(scheme)) {
  open_stores().add(scheme_, std::move(store));
}

ScopedStore::~ScopedStore() {
  open_stores().remove(scheme_);
}

}  // namespace headrace

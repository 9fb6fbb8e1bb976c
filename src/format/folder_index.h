// SPDX-License-Identifier: Apache-2.0
//
// What the formats share whose folder is described by one index.json.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/mutex.h"
#include "base/status.h"
#include "storage/paths.h"
#include "storage/store.h"

namespace headrace {

inline constexpr std::string_view kFolderIndex = "index.json";

// "a/b/x.bin" is "a/b/index.json".
inline std::string index_beside(std::string_view path) {
  return std::string(path.substr(0, path.rfind('/') + 1)).append(kFolderIndex);
}

// Names from an index.json stay within its folder.
inline bool stays_inside(std::string_view name) {
  return !name.empty() && !name.starts_with('/') && !name.starts_with("../") &&
         name.find("/../") == std::string_view::npos && name != "..";
}

// The last text that was parsed: thousands of shards, indexed one by one, ask for the same.
// Thread-safe.
template <typename T>
class LastParsed {
 public:
  template <typename Parse>
  Result<std::shared_ptr<const T>> get(Bytes text, const Parse& parse) {
    const Hash128 hash = Hasher().add(text).finish();
    {
      MutexLock lock(mu_);
      if (value_ != nullptr && hash_ == hash) return value_;
    }
    HEADRACE_ASSIGN(T parsed, parse(as_text(text)));
    auto value = std::make_shared<const T>(std::move(parsed));
    MutexLock lock(mu_);
    hash_ = hash;
    value_ = value;
    return value;
  }

 private:
  Mutex mu_;
  Hash128 hash_ HEADRACE_GUARDED_BY(mu_);
  std::shared_ptr<const T> value_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "device/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "base/mutex.h"

namespace headrace {
namespace {

struct Folders {
  Mutex mu;
  std::vector<std::string> given HEADRACE_GUARDED_BY(mu);
};

Folders& folders() {
  static auto& all = *new Folders;
  return all;
}

// In the order of looking; "" is the system's own way.
std::vector<std::string> places() {
  std::vector<std::string> out;
  if (const char* listed = std::getenv("HEADRACE_CUDA_PATH"); listed != nullptr) {
    std::string one;
    for (const char* c = listed;; ++c) {
      if (*c != ':' && *c != '\0') {
        one += *c;
        continue;
      }
      if (!one.empty()) out.push_back(one);
      one.clear();
      if (*c == '\0') break;
    }
  }
  out.emplace_back();
  Folders& all = folders();
  MutexLock lock(all.mu);
  out.insert(out.end(), all.given.begin(), all.given.end());
  out.emplace_back("/usr/local/cuda/lib64");
  return out;
}

}  // namespace

void add_library_folders(const std::vector<std::string>& given) {
  Folders& all = folders();
  MutexLock lock(all.mu);
  all.given = given;
}

Result<SharedLibrary> SharedLibrary::load(const std::vector<std::string>& names,
                                          const std::string& what, const std::string& remedy) {
  std::string why;
  for (const std::string& place : places()) {
    for (const std::string& name : names) {
      const std::string path = place.empty() ? name : place + "/" + name;
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr)
        return SharedLibrary(handle, path, what);
      if (const char* text = dlerror(); why.empty() && text != nullptr) why = text;
    }
  }
  return unsupported(fmt::format("{} is not there ({}); {}", what, why, remedy));
}

Result<void*> SharedLibrary::symbol(const char* name) const {
  if (void* found = dlsym(handle_, name); found != nullptr) return found;
  return unsupported(fmt::format("{} ({}) is too old: it has no {}", what_, path_, name));
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Libraries of the GPU's maker, loaded when they are needed: nothing of CUDA is there when headrace
// is built, and none of it is needed where no GPU is used.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace headrace {

// Where to look besides the system's own places: the folders of HEADRACE_CUDA_PATH first, then
// these (those of Python's nvidia-* packages).  Before the first library is loaded.
void add_library_folders(const std::vector<std::string>& folders);

// A loaded library stays for good.  Thread-safe.
class SharedLibrary {
 public:
  // The first of `names` ("libnvjpeg.so.13", …) that can be loaded.  `what` and `remedy` are for
  // the error: "nvJPEG", "pip install nvidia-nvjpeg".
  static Result<SharedLibrary> load(const std::vector<std::string>& names, const std::string& what,
                                    const std::string& remedy);

  // kUnsupported where there is no such function: the library is too old.
  template <typename F>
  Status find(const char* name, F*& out) const {
    HEADRACE_ASSIGN(void* found, symbol(name));
    out = reinterpret_cast<F*>(found);
    return {};
  }
  const std::string& path() const { return path_; }

 private:
  SharedLibrary(void* handle, std::string path, std::string what)
      : handle_(handle), path_(std::move(path)), what_(std::move(what)) {}
  Result<void*> symbol(const char* name) const;

  void* handle_;
  std::string path_;
  std::string what_;
};

}  // namespace headrace

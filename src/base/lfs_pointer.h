// SPDX-License-Identifier: Apache-2.0
//
// What a clone of a repository has in the place of large files where Git LFS is not installed: a
// text of three lines.
#pragma once

#include <string_view>

#include "base/bytes.h"

namespace headrace {

inline constexpr const char* kLfsPointer =
    "a pointer of Git LFS in the place of the data; run 'git lfs pull' in the repository";

inline bool is_lfs_pointer(Bytes head) {
  return as_text(head).starts_with("version https://git-lfs.github.com/spec/");
}

}  // namespace headrace

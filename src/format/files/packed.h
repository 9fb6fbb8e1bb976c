// SPDX-License-Identifier: Apache-2.0
//
// What a text file was packed with, by its name.
#pragma once

#include <memory>
#include <string_view>

#include "base/inflater.h"
#include "base/zlib.h"
#include "base/zstd.h"
#include "index/names.h"

namespace headrace {

// Of x.gz and x.zst; null: the file is not packed.
inline Result<std::unique_ptr<Inflater>> inflater_of(std::string_view path) {
  const std::string name = lower_case(path);
  if (name.ends_with(".gz")) return zlib_inflater();
  if (name.ends_with(".zst")) return zstd_inflater();
  return std::unique_ptr<Inflater>();
}

}  // namespace headrace

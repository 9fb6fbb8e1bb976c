// SPDX-License-Identifier: Apache-2.0
//
// Where indexes of files of arrays lie: beside the first file (`X.hridx`; of several files
// `X#365-1f2e3d4c.hridx`, one for all), else in the cache folder; or in a folder that
// `headrace index` made.
#pragma once

#include <string>
#include <vector>

#include "array/tree.h"
#include "base/status.h"
#include "storage/store.h"

namespace headrace {

// The name of the file in a folder that `headrace index` made.
inline constexpr std::string_view kArrayIndexName = "headrace.arrays";

// The files or folders of a data set, in its order.
struct ArrayPlaces {
  std::vector<std::string> paths;   // absolute, or URLs, all of one store
  std::vector<std::string> groups;  // of each; "": all of it
  std::string mode;                 // "": arrays; "groups": each group is a sample
};

// The index, where it is there, intact and current, with the names of all files whole; else why
// not. Of `folder` ("": beside the data or in the cache) a missing or damaged one is an error that
// names it.
Result<Tree> find_array_index(const ArrayPlaces& places, const std::string& folder);

// Writes it: beside the data, else into the cache; or into `folder`.  Files in it are relative to
// their entry's path.  A notice for the user where it lies elsewhere, or nowhere.
Result<std::string> keep_array_index(const ArrayPlaces& places, Tree index,
                                     const std::string& folder);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Where the index lies that a function of the user's made of a data set's files (a registered
// format): beside the first file (`X.hridx`; of several files `X#365-1f2e3d4c.hridx`, one for
// all), else in the cache folder.  It holds while every file that it names has its size and time,
// and the user says the same version of the function.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "index/part.h"
#include "storage/store.h"

namespace headrace {

struct MadePlaces {
  std::string root;                // a folder or URL, which the names below are relative to
  std::vector<std::string> files;  // of the data set, in its order
  std::string format;
  std::string version;  // of the function, as its author says
};

// What the head of the part says of them: nothing else tells later whether it is current.  `files`:
// all that the part names, those of the data set and others.
Status stamp_made_part(const MadePlaces& places, const std::vector<std::string>& files,
                       PartHead& head);

// The part, where it is there, intact and current; else why not.
Result<PartPointer> find_made_part(const MadePlaces& places);

// Writes it.  A notice for the user where it lies elsewhere than beside the data, or nowhere.
std::string keep_made_part(const MadePlaces& places, const Part& part);

}  // namespace headrace

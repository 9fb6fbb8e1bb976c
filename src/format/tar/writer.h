// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "format/format.h"

namespace headrace {

// Deterministic: ustar with fixed owner, mode and time; PAX only where a name or a size does
// not fit.  Refuses what a tar cannot hold: a key with a dot in its base name or that came
// before, several values of a field.  Field names become lower case, as they are read.
std::unique_ptr<Writer> make_tar_writer(std::unique_ptr<Sink> sink);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// The local file system.  For this folder alone: all others ask open_store().
#pragma once

#include <memory>

#include "storage/store.h"

namespace headrace {

// Keeps up to `open_files` descriptors of files that are read by ranges; whole files are opened,
// read and closed.  stat() of a path closes a descriptor of what the path no longer names.
std::shared_ptr<const Store> local_store(size_t open_files = 256);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// A data set whose files are held in memory (storage/held.h).
#pragma once

#include <memory>

#include "index/indexed_source.h"
#include "storage/held.h"

namespace headrace {

struct HeldSource {
  std::shared_ptr<const Source> source;  // the same data set, read from memory
  HeldFiles held;
};

// The same data set, read through another store.
std::shared_ptr<const Source> read_through(std::shared_ptr<const Source> source,
                                           std::shared_ptr<const Store> store);

// Reads all files of the source, or finds that another process did.
Result<HeldSource> hold_source(std::shared_ptr<const IndexedSource> source,
                               const HoldOptions& options);

// Likewise, of a source whose files are these.
Result<HeldSource> hold_source(std::shared_ptr<const Source> source, std::vector<std::string> files,
                               const HoldOptions& options);

}  // namespace headrace

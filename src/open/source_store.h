// SPDX-License-Identifier: Apache-2.0
//
// From what a user names to the store that all of it lies in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "open/open.h"

namespace headrace {

// The servers that URLs name, braces expanded: for StoreOptions::named.
Result<std::vector<std::string>> servers_of(const std::vector<std::string>& urls);

// `options.store`, where there is one.  A list on this disk may name files on servers.
Result<std::shared_ptr<const Store>> source_store(const std::vector<std::string>& urls,
                                                  const OpenOptions& options);

}  // namespace headrace

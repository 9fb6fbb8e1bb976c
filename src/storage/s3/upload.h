// SPDX-License-Identifier: Apache-2.0
//
// Objects written: a small one by one PUT, a larger one in parts of which several are under way.
// An object appears when its sink is closed, whole; one that is given up leaves nothing.
//
//   append ──► part of 8 MiB full ──► PUT ?partNumber=1   (at most four at a time)
//   close  ──► the last part      ──► POST ?uploadId      the object is there
#pragma once

#include <memory>
#include <string>

#include "storage/sink.h"
#include "storage/store_options.h"

namespace headrace {

Result<std::unique_ptr<Sink>> s3_sink(const StoreOptions& options, const std::string& path);
// OK where there is none.
Status s3_remove(const StoreOptions& options, const std::string& path);

}  // namespace headrace

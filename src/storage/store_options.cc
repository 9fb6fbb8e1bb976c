// SPDX-License-Identifier: Apache-2.0
#include "storage/store_options.h"

#include <fmt/format.h>

namespace headrace {
namespace {

thread_local const StoreOptions* current = nullptr;

}  // namespace

Status StoreOptions::validate() const {
  if (addressing != "auto" && addressing != "path" && addressing != "virtual")
    return invalid(fmt::format("addressing is 'auto', 'path' or 'virtual', not '{}'", addressing));
  if (credentials.empty() != credentials.secret_key.empty())
    return invalid("access_key and secret_key come together");
  for (const double seconds :
       {backoff_s, connect_timeout_s, stall_retry_s, stall_warning_s, stall_error_s})
    if (!(seconds > 0)) return invalid("times of a storage are seconds above 0");
  return {};
}

const StoreOptions& current_store_options() {
  static const StoreOptions usual;
  return current == nullptr ? usual : *current;
}

ScopedStoreOptions::ScopedStoreOptions(const StoreOptions& options)
    : options_(options), before_(current) {
  current = &options_;
}

ScopedStoreOptions::~ScopedStoreOptions() {
  current = before_;
}

}  // namespace headrace

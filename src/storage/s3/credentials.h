// SPDX-License-Identifier: Apache-2.0
//
// Who asks, and where: from the arguments, the environment, the files of a profile, or whoever else
// knows (StoreOptions::refresh), in this order.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "storage/store_options.h"

namespace headrace {

// [section] name = value.  Sections of the config file are "profile x"; of both files the name
// alone counts.
using IniFile = std::map<std::string, std::map<std::string, std::string>, std::less<>>;
IniFile parse_ini(std::string_view text);

// What the environment and the profile's files say, in the arguments' place where these are empty.
struct S3Settings {
  std::string endpoint;
  std::string region;
  Credentials credentials;
  std::string expected;  // where credentials were looked for, for a message
};
Result<S3Settings> s3_settings(const StoreOptions& options);

// Credentials that are asked for anew before they expire.  Thread-safe.
class CredentialSource {
 public:
  CredentialSource(Credentials known, const StoreOptions& options);

  // May take its time.  kPermission where nobody has any.
  Status prepare(std::string_view expected);
  Credentials current() const;  // does not wait
  // They were refused as expired: the next prepare() asks again.
  void expire();

 private:
  const std::function<Result<Credentials>()> refresh_;
  const bool anonymous_;
  Mutex refreshing_;  // one asks, the others wait
  int64_t asked_s_ HEADRACE_GUARDED_BY(refreshing_) = 0;
  mutable Mutex mu_;
  std::shared_ptr<const Credentials> held_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// StoreOptions: what a user says of where data lie and who may read them; hr.storage(...) in
// Python.  Secrets in it go to the server they are for and nowhere else: no message, no text of an
// error and no file holds them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace headrace {

class OpeningMemo;  // storage/stat_memo.h

// Who asks, of an S3 store.
struct Credentials {
  std::string access_key = {};
  std::string secret_key = {};
  std::string session_token = {};
  int64_t expires_s = 0;  // of the Unix clock; 0: never

  bool empty() const { return access_key.empty(); }
};

struct StoreOptions {
  // S3 and what speaks like it.  "": from the environment, from the profile, else Amazon's.
  std::string endpoint = {};  // https://host[:port]
  std::string region = {};
  std::string profile = {};
  Credentials credentials = {};
  // Asked where nothing else has credentials, and again before these expire.  It may take its
  // time: it is called by the threads that hand requests over.
  std::function<Result<Credentials>()> refresh = {};
  bool anonymous = false;
  bool requester_pays = false;
  std::string addressing = "auto";  // "path": host/bucket/key; "virtual": bucket.host/key

  // HTTP.
  std::string token = {};  // Authorization: Bearer
  std::string user = {};   // Authorization: Basic
  std::string password = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  // The servers that the user's call names: token, password and headers go to these alone, whatever
  // others a list of files names.  Unset: open_source() takes those of its URLs, others take all.
  std::optional<std::vector<std::string>> named = {};
  std::string ca_file = {};       // in place of the system's
  bool allow_plain_http = false;  // credentials over http:// to other machines
  bool allow_link_local = false;  // 169.254.0.0/16, fe80::/10

  // How it is read.
  uint32_t connections = 0;  // at most so many requests at a time; 0: found out while reading
  uint32_t retries = 8;
  double backoff_s = 0.1;         // before the first retry; doubled each time, with jitter
  double connect_timeout_s = 10;  // of one try
  double stall_retry_s = 20;      // a try without a byte for so long is given up for another
  double stall_warning_s = 60;    // a request without a byte for so long is reported
  double stall_error_s = 300;     // and for so long has failed
  bool hedge = true;              // a second request for the slowest one

  // What one call that opens data asks of servers, so that nothing is asked twice; may be null.
  std::shared_ptr<OpeningMemo> opening = {};

  // Whether the numbers make sense.
  Status validate() const;
};

// Of the innermost ScopedStoreOptions of this thread; else the defaults.
const StoreOptions& current_store_options();

// While it lives, what its thread opens without options of its own is opened with these: a call
// that opens many things (formats, lists, files of arrays) need not hand them through.
class ScopedStoreOptions {
 public:
  explicit ScopedStoreOptions(const StoreOptions& options);
  ~ScopedStoreOptions();
  ScopedStoreOptions(const ScopedStoreOptions&) = delete;
  ScopedStoreOptions& operator=(const ScopedStoreOptions&) = delete;

 private:
  const StoreOptions options_;
  const StoreOptions* const before_;
};

}  // namespace headrace

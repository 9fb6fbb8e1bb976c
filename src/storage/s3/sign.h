// SPDX-License-Identifier: Apache-2.0
//
// AWS Signature Version 4, as S3 wants it: the path is encoded once, and the hash of the body is a
// header.  libcurl 7.88 has one of its own, which signs queries unsorted.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/store_options.h"

namespace headrace {

struct SignedRequest {
  std::string method;
  std::string host;                                               // with its port
  std::string path;                                               // encoded
  std::vector<std::pair<std::string, std::string>> query = {};    // not encoded, in any order
  std::vector<std::pair<std::string, std::string>> headers = {};  // lower case; signed too
  std::string body_hash;                                          // hex, or "UNSIGNED-PAYLOAD"
};

// a=b&c=d, sorted and encoded, as it is signed and must be sent.
std::string canonical_query(const std::vector<std::pair<std::string, std::string>>& query);

// The lines to send: Authorization, x-amz-date, x-amz-content-sha256, x-amz-security-token, and
// `headers`.  `now` is 20130524T000000Z.
std::vector<std::string> sign(const SignedRequest& request, const Credentials& credentials,
                              std::string_view region, std::string_view service,
                              std::string_view now);

// The time as sign() takes it.
std::string amazon_time(int64_t unix_s);

}  // namespace headrace

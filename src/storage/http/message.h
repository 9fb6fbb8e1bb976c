// SPDX-License-Identifier: Apache-2.0
//
// What goes to a server, and the head of what comes back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/store_options.h"

namespace headrace {

struct HttpRequest {
  std::string method = "GET";
  std::string url;                            // whole, encoded, without a user
  std::vector<std::string> headers = {};      // "name: value"
  std::vector<std::string> credentials = {};  // likewise; never sent to another server
  std::shared_ptr<const std::string> body = nullptr;
};

struct HttpHead {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> fields = {};  // names in lower case

  // "" where there is none.
  std::string_view find(std::string_view name) const;
  std::optional<uint64_t> content_length() const;
  bool is_redirect() const;
};

// "bytes 3-6/10"; the total is none where the server does not know it.
struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  std::optional<uint64_t> total = {};
};
std::optional<ContentRange> parse_content_range(std::string_view text);

// "Sun, 06 Nov 1994 08:49:37 GMT" or "1994-11-06T08:49:37.000Z"; 0 where it is neither.
int64_t parse_web_time_ns(std::string_view text);
// Retry-After: seconds, or a date.
std::optional<double> parse_retry_after(std::string_view text, int64_t now_s);

// ETag, else size and time, else "".
std::string version_from(const HttpHead& head, std::optional<uint64_t> bytes);

}  // namespace headrace

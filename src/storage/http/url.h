// SPDX-License-Identifier: Apache-2.0
//
// Urls of http and https: taken apart, encoded, put together.  Text alone.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace headrace {

struct WebUrl {
  std::string scheme;     // "http", "https"
  std::string user = {};  // "name:password"; never shown
  std::string host;       // lower case, with its brackets where it is an IPv6 address
  std::string port = {};  // "" where it is the scheme's
  std::string path;       // begins with '/', as it stands in the URL
  std::string query = {};

  std::string origin() const;  // scheme://host[:port]: what requests share connections with
  std::string text() const;    // without the user
};

// kInvalidArgument where it is no such URL.
Result<WebUrl> parse_web_url(std::string_view url);

// Every byte but A-Z a-z 0-9 - . _ ~ as %XX; '/' stays where it separates.
std::string percent_encoded(std::string_view text, bool keep_slashes);
std::string percent_decoded(std::string_view text);
// A path that may be encoded already: '%' before two digits and what a path may have stays.
std::string encoded_path(std::string_view path);

// Where a redirect from `base` leads.
Result<WebUrl> resolve_url(const WebUrl& base, std::string_view location);

// This machine's own addresses: what goes there passes no network.
bool is_loopback(std::string_view host);
// 169.254.0.0/16 and fe80::/10, written as an address.
bool is_link_local(std::string_view host);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "base/shown_url.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

constexpr std::string_view kEnds = " \t\r\n\"'<>,;)";

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '%';
}

// Where the query of the URL that begins the text begins; the size where it has none.
size_t query_of(std::string_view url) {
  for (size_t mark = url.find('?'); mark != std::string_view::npos;
       mark = url.find('?', mark + 1)) {
    size_t end = mark + 1;
    while (end < url.size() && is_name(url[end])) ++end;
    if (end > mark + 1 && end < url.size() && url[end] == '=') return mark;
  }
  return url.size();
}

// Whether a parameter of this name is a part of a signature: of Amazon's (both kinds, CloudFront's
// too), Google's, Azure's and what is compatible with them.
bool signs(std::string_view name, bool is_azure) {
  constexpr std::string_view kPrefixes[] = {"x-amz-", "x-goog-", "x-oss-", "q-"};
  constexpr std::string_view kNames[] = {"signature",   "expires",        "policy",
                                         "key-pair-id", "awsaccesskeyid", "googleaccessid",
                                         "accesskeyid", "ossaccesskeyid"};
  constexpr std::string_view kOfAzure[] = {"sig", "se",  "st",    "sp",    "sv",  "sr",
                                           "spr", "sip", "skoid", "sktid", "skt", "ske",
                                           "sks", "skv", "ss",    "srt",   "si"};
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  const auto is_it = [&lower](std::string_view known) { return lower == known; };
  const auto begins_it = [&lower](std::string_view prefix) { return lower.starts_with(prefix); };
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes), begins_it) ||
         std::any_of(std::begin(kNames), std::end(kNames), is_it) ||
         (is_azure && std::any_of(std::begin(kOfAzure), std::end(kOfAzure), is_it));
}

size_t next_url(std::string_view text, size_t from) {
  return std::min(text.find("http://", from), text.find("https://", from));
}

}  // namespace

std::string shown_urls(std::string text) {
  for (size_t at = next_url(text, 0); at != std::string::npos; at = next_url(text, at + 1)) {
    size_t end = std::min(text.find_first_of(kEnds, at), text.size());
    while (end > at && text[end - 1] == ':') --end;  // what follows is what is wrong with it
    const size_t query = at + query_of(std::string_view(text).substr(at, end - at));
    if (query < end) text.replace(query, end - query, "?...");
  }
  return text;
}

std::string without_signature(std::string_view url) {
  std::string out(without_query(url));
  if (!has_query(url)) return out;
  std::string_view rest = url.substr(out.size() + 1);
  const bool is_azure = rest.starts_with("sig=") || rest.find("&sig=") != std::string_view::npos;
  char before = '?';
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    if (signs(one.substr(0, one.find('=')), is_azure)) continue;
    out.append(1, std::exchange(before, '&')).append(one);
  }
  return out;
}

std::string_view without_query(std::string_view url) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) return url;
  return url.substr(0, query_of(url));
}

}  // namespace headrace

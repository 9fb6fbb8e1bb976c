// SPDX-License-Identifier: Apache-2.0
#include "base/shown_url.h"

#include <algorithm>

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

std::string_view without_query(std::string_view url) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) return url;
  return url.substr(0, query_of(url));
}

}  // namespace headrace

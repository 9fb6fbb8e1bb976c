// SPDX-License-Identifier: Apache-2.0
#include "storage/http/index_page.h"

#include <algorithm>

#include "storage/http/url.h"

namespace headrace {
namespace {

std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool found = false;
    for (const auto& [name, c] : {std::pair<std::string_view, char>{"&amp;", '&'},
                                  {"&quot;", '"'},
                                  {"&#x27;", '\''},
                                  {"&#39;", '\''},
                                  {"&lt;", '<'},
                                  {"&gt;", '>'}}) {
      if (!text.substr(i).starts_with(name)) continue;
      out += c;
      i += name.size() - 1;
      found = true;
      break;
    }
    if (!found) out += text[i];
  }
  return out;
}

}  // namespace

std::optional<std::vector<IndexEntry>> parse_index_page(std::string_view html) {
  const std::string_view head = html.substr(0, 4096);
  if (head.find("Index of ") == std::string_view::npos &&
      head.find("Directory listing for ") == std::string_view::npos)
    return std::nullopt;
  std::vector<IndexEntry> out;
  constexpr std::string_view kLink = "href=\"";
  for (size_t at = html.find(kLink); at != std::string_view::npos; at = html.find(kLink, at)) {
    at += kLink.size();
    const size_t end = html.find('"', at);
    if (end == std::string_view::npos) break;
    std::string link = unescaped(html.substr(at, end - at));
    if (link.starts_with("./")) link.erase(0, 2);
    // Columns to sort by, the folder above, other servers, styles.
    if (link.empty() || link[0] == '?' || link[0] == '/' || link[0] == '#' ||
        link.starts_with("..") || link.find("://") != std::string::npos)
      continue;
    const bool is_folder = link.ends_with('/');
    if (is_folder) link.pop_back();
    if (link.find('/') != std::string::npos || link.find('?') != std::string::npos) continue;
    std::string name = percent_decoded(link);
    if (name.empty() || name.find('/') != std::string::npos) continue;
    out.push_back({std::move(name), is_folder});
  }
  std::sort(out.begin(), out.end(),
            [](const IndexEntry& a, const IndexEntry& b) { return a.name < b.name; });
  out.erase(std::unique(out.begin(), out.end(),
                        [](const IndexEntry& a, const IndexEntry& b) { return a.name == b.name; }),
            out.end());
  return out;
}

}  // namespace headrace

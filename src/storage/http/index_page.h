// SPDX-License-Identifier: Apache-2.0
//
// Index pages: what a web server shows of a folder that has no page of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

struct IndexEntry {
  std::string name;  // decoded
  bool is_folder = false;
};

// The entries of an index page as nginx, Apache, lighttpd and Python's http.server write it;
// nothing where the text is another page.
std::optional<std::vector<IndexEntry>> parse_index_page(std::string_view html);

}  // namespace headrace

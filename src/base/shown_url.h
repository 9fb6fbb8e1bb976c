// SPDX-License-Identifier: Apache-2.0
//
// URLs as they may be shown: what follows the '?' of a web address may be a signature that opens
// the file to whoever reads it (presigned URLs).
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// The text with "?..." in place of every query of an http or https URL in it; a '?' without a
// `name=` behind it is a wildcard, and stays.
std::string shown_urls(std::string text);

// A URL without its query; a path, and a pattern with a '?', as it is.
std::string_view without_query(std::string_view url);

inline bool has_query(std::string_view url) {
  return without_query(url).size() < url.size();
}

// A URL without what signs it, which is another each time; what else its query says may name the
// file (`?id=7`), and stays.
std::string without_signature(std::string_view url);

}  // namespace headrace

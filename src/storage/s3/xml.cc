// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/xml.h"

#include <algorithm>
#include <charconv>

#include "storage/http/message.h"
#include "storage/http/url.h"

namespace headrace {
namespace {

// What lies between <name> and </name> from `at` on, which then stands behind it.
bool next_element(std::string_view xml, std::string_view name, size_t& at, std::string_view& out) {
  const std::string open = '<' + std::string(name) + '>';
  const std::string close = "</" + std::string(name) + '>';
  const size_t begin = xml.find(open, at);
  if (begin == std::string_view::npos) return false;
  const size_t end = xml.find(close, begin + open.size());
  if (end == std::string_view::npos) return false;
  out = xml.substr(begin + open.size(), end - begin - open.size());
  at = end + close.size();
  return true;
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 63));
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  }
}

std::string unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t mark = text.find('&');
    out.append(text.substr(0, mark));
    if (mark == std::string_view::npos) break;
    text.remove_prefix(mark + 1);
    const size_t end = text.find(';');
    if (end == std::string_view::npos) break;
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (name == "amp") out += '&';
    if (name == "lt") out += '<';
    if (name == "gt") out += '>';
    if (name == "quot") out += '"';
    if (name == "apos") out += '\'';
    if (name.starts_with('#')) {
      const bool hex = name.size() > 1 && name[1] == 'x';
      const std::string_view digits = name.substr(hex ? 2 : 1);
      uint32_t c = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), c, hex ? 16 : 10);
      if (c != 0 && c < 0x110000) append_utf8(out, c);
    }
  }
  return out;
}

// As Amazon encodes keys in a listing: a space is '+', and '+' is %2B.
std::string decoded(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  return percent_decoded(text);
}

}  // namespace

std::string xml_text(std::string_view xml, std::string_view name) {
  size_t at = 0;
  std::string_view found;
  return next_element(xml, name, at, found) ? unescaped(found) : "";
}

Result<S3List> parse_s3_list(std::string_view xml, std::string_view root) {
  if (xml.find("<ListBucketResult") == std::string_view::npos)
    return unavailable("the server answers something else than a listing");
  const bool is_encoded = xml_text(xml, "EncodingType") == "url";
  const auto path = [&](std::string_view part, std::string_view name) {
    const std::string text = xml_text(part, name);
    return std::string(root) + (is_encoded ? decoded(text) : text);
  };
  S3List out;
  std::string_view part;
  for (size_t at = 0; next_element(xml, "Contents", at, part);) {
    FileInfo info{.path = path(part, "Key"),
                  .modified_ns = parse_web_time_ns(xml_text(part, "LastModified")),
                  .version = xml_text(part, "ETag")};
    const std::string size = xml_text(part, "Size");
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), info.bytes);
    if (error != std::errc()) return unavailable("a listing without sizes");
    if (!info.path.ends_with('/')) out.entries.push_back(std::move(info));
  }
  for (size_t at = 0; next_element(xml, "CommonPrefixes", at, part);) {
    std::string folder = path(part, "Prefix");
    while (folder.ends_with('/')) folder.pop_back();
    out.entries.push_back({.path = std::move(folder), .is_folder = true});
  }
  if (xml_text(xml, "IsTruncated") == "true") out.next = xml_text(xml, "NextContinuationToken");
  return out;
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "storage/http/message.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "storage/store.h"

namespace headrace {
namespace {

template <typename T>
bool take_number(std::string_view& text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

}  // namespace

std::string_view HttpHead::find(std::string_view name) const {
  for (const auto& [key, value] : fields)
    if (key == name) return value;
  return {};
}

std::optional<uint64_t> HttpHead::content_length() const {
  std::string_view text = find("content-length");
  uint64_t length = 0;
  if (!take_number(text, length) || !text.empty()) return std::nullopt;
  return length;
}

bool HttpHead::is_redirect() const {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  ContentRange range;
  if (!take(text, "bytes ") || !take_number(text, range.first) || !take(text, "-") ||
      !take_number(text, range.last) || !take(text, "/") || range.last < range.first)
    return std::nullopt;
  if (text == "*") return range;
  uint64_t total = 0;
  if (!take_number(text, total) || !text.empty() || range.last >= total) return std::nullopt;
  range.total = total;
  return range;
}

int64_t parse_web_time_ns(std::string_view text) {
  const std::string copy(text);
  for (const char* form : {"%a, %d %b %Y %H:%M:%S", "%Y-%m-%dT%H:%M:%S"}) {
    std::tm when{};
    const char* end = ::strptime(copy.c_str(), form, &when);
    if (end == nullptr) continue;
    const int64_t seconds = ::timegm(&when);
    int64_t ns = 0;
    if (*end == '.')
      for (int64_t unit = 100'000'000; *++end >= '0' && *end <= '9'; unit /= 10)
        ns += (*end - '0') * unit;
    return seconds * 1'000'000'000 + ns;
  }
  return 0;
}

std::optional<double> parse_retry_after(std::string_view text, int64_t now_s) {
  uint64_t seconds = 0;
  std::string_view rest = text;
  if (take_number(rest, seconds) && rest.empty()) return static_cast<double>(seconds);
  const int64_t when = parse_web_time_ns(text) / 1'000'000'000;
  if (when == 0) return std::nullopt;
  return static_cast<double>(std::max<int64_t>(0, when - now_s));
}

std::string version_from(const HttpHead& head, std::optional<uint64_t> bytes) {
  if (const std::string_view tag = head.find("etag"); !tag.empty()) return std::string(tag);
  const int64_t modified = parse_web_time_ns(head.find("last-modified"));
  return modified == 0 || !bytes ? "" : version_of(*bytes, modified);
}

}  // namespace headrace

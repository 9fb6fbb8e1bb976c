// SPDX-License-Identifier: Apache-2.0
//
// Braces, as a shell expands them: {0000..0127}, {a,b}, nested.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "open/expand.h"

namespace headrace {
namespace {

using Texts = std::vector<std::string>;

// The brace that closes the one at `open`; npos when none does.
size_t closing_brace(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// "a,{b,c},d" at its top-level commas.
Texts split_alternatives(std::string_view body) {
  Texts out(1);
  int depth = 0;
  for (const char c : body) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth == 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

bool parse_bound(std::string_view text, int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// "0000..0127": zero-padded when either bound starts with a zero.
std::optional<Result<Texts>> expand_range(std::string_view body) {
  const size_t dots = body.find("..");
  if (dots == std::string_view::npos) return {};
  const std::string_view low = body.substr(0, dots);
  const std::string_view high = body.substr(dots + 2);
  int64_t from = 0;
  int64_t to = 0;
  if (!parse_bound(low, from) || !parse_bound(high, to)) return {};
  const auto padded = [](std::string_view s) {
    return s.size() > 1 && s[s[0] == '-' ? 1 : 0] == '0';
  };
  const size_t width = padded(low) || padded(high) ? std::max(low.size(), high.size()) : 0;
  const uint64_t steps = from < to ? static_cast<uint64_t>(to) - static_cast<uint64_t>(from)
                                   : static_cast<uint64_t>(from) - static_cast<uint64_t>(to);
  if (steps >= kMaxShards)
    return Status(invalid(fmt::format("{{{}}} is more than {} names", body, kMaxShards)));
  Texts out;
  for (uint64_t i = 0; i <= steps; ++i) {
    const int64_t n = from < to ? from + static_cast<int64_t>(i) : from - static_cast<int64_t>(i);
    out.push_back(fmt::format("{:0{}}", n, width));
  }
  return out;
}

}  // namespace

Result<std::vector<std::string>> expand_braces(const std::string& pattern) {
  Texts heads{""};
  std::string_view rest = pattern;
  while (!rest.empty()) {
    const size_t open = rest.find('{');
    const size_t close = open == std::string_view::npos ? open : closing_brace(rest, open);
    if (open != std::string_view::npos && close == std::string_view::npos)
      return invalid(fmt::format("'{}' has a brace that is not closed", pattern));
    for (std::string& head : heads) head += rest.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::string_view body = rest.substr(open + 1, close - open - 1);
    Texts middles;
    if (std::optional<Result<Texts>> range = expand_range(body)) {
      HEADRACE_ASSIGN(middles, std::move(*range));
    } else {
      const Texts alternatives = split_alternatives(body);
      for (const std::string& alternative : alternatives) {
        HEADRACE_ASSIGN(const Texts inner, expand_braces(alternative));
        middles.insert(middles.end(), inner.begin(), inner.end());
      }
      // "{x}" is no choice, and stays as it is in a shell too.
      if (alternatives.size() == 1)
        for (std::string& middle : middles) middle = '{' + middle + '}';
    }
    if (heads.size() * middles.size() > kMaxShards)
      return invalid(fmt::format("'{}' is more than {} names", pattern, kMaxShards));
    Texts longer;
    longer.reserve(heads.size() * middles.size());
    for (const std::string& head : heads)
      for (const std::string& middle : middles) longer.push_back(head + middle);
    heads = std::move(longer);
    rest.remove_prefix(close + 1);
  }
  return heads;
}

}  // namespace headrace

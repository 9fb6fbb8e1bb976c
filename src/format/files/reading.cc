// SPDX-License-Identifier: Apache-2.0
#include "format/files/reading.h"

#include <fmt/format.h>

#include <charconv>

namespace headrace {
namespace {

std::string unquoted(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const bool is_code = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr ==
                             text.data() + i + 3;
    out += is_code ? static_cast<char>(byte) : text[i];
    if (is_code) i += 2;
  }
  return out;
}

std::vector<std::string_view> pieces(std::string_view text, char between) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t end = text.find(between);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

Status not_known(std::string_view option) {
  return invalid(fmt::format(
      "'#{}' says nothing of a list or table; header=, separator= and table= do", option));
}

Result<bool> yes_or_no(std::string_view name, std::string_view value) {
  if (value == "yes") return true;
  if (value == "no") return false;
  return invalid(fmt::format("{}={}: yes or no is wanted", name, value));
}

Status take(std::string_view name, std::string_view value, ListReading& out) {
  if (name == "separator") {
    const std::string text = unquoted(value);
    if (text.size() != 1 || text == "\n" || text == "\r" || text == "\"")
      return invalid(fmt::format("separator='{}': one character is wanted", text));
    out.separator = text[0];
    return {};
  }
  if (name == "table") {
    HEADRACE_ASSIGN(out.table, yes_or_no(name, value));
    return {};
  }
  if (name != "header") return not_known(name);
  if (value == "yes" || value == "no") {
    out.header = value == "yes";
    return {};
  }
  out.header = false;
  for (const std::string_view column : pieces(value, ',')) out.names.push_back(unquoted(column));
  return {};
}

}  // namespace

Result<ListReading> ListReading::parse(std::string_view part) {
  ListReading out;
  if (part.empty()) return out;
  for (const std::string_view option : pieces(part, '&')) {
    const size_t equals = option.find('=');
    if (equals == std::string_view::npos) return not_known(option);
    HEADRACE_TRY(take(option.substr(0, equals), option.substr(equals + 1), out));
  }
  return out;
}

std::string separator_text(char separator) {
  return separator == '\t' ? "\\t" : std::string(1, separator);
}

}  // namespace headrace

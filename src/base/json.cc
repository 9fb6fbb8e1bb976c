// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace headrace {
namespace {

bool take_word(std::string_view& rest, std::string_view word) {
  if (!rest.starts_with(word)) return false;
  rest.remove_prefix(word.size());
  return true;
}

bool take_hex4(std::string_view& rest, uint32_t& out) {
  if (rest.size() < 4) return false;
  out = 0;
  for (const char c : rest.substr(0, 4)) {
    const size_t digit = std::string_view("0123456789abcdefABCDEF").find(c);
    if (digit == std::string_view::npos) return false;
    out = out * 16 + static_cast<uint32_t>(digit < 16 ? digit : digit - 6);
  }
  rest.remove_prefix(4);
  return true;
}

// UTF-16, which the escapes are, to UTF-8.
Status take_unicode(std::string_view& rest, std::string& out) {
  uint32_t c = 0;
  uint32_t low = 0;
  if (!take_hex4(rest, c)) return corrupt("four hexadecimal digits belong after '\\u'");
  if (c >= 0xd800 && c < 0xdc00) {
    if (!take_word(rest, "\\u") || !take_hex4(rest, low) || low < 0xdc00 || low > 0xdfff)
      return corrupt("half a surrogate pair, which is no text; remove or replace it");
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  }
  put_utf8(out, c);
  return {};
}

Status take_escape(std::string_view& rest, std::string& out) {
  static constexpr std::string_view kNames = "\"\\/bfnrt";
  static constexpr std::string_view kMeans = "\"\\/\b\f\n\r\t";
  if (take_word(rest, "u")) return take_unicode(rest, out);
  const size_t i = rest.empty() ? std::string_view::npos : kNames.find(rest[0]);
  if (i == std::string_view::npos) return corrupt("an unknown escape in the JSON");
  out += kMeans[i];
  rest.remove_prefix(1);
  return {};
}

}  // namespace

// One thread at a time.  Recurses as deep as the text nests, at most kDeepest.
class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text), rest_(text) {}

  Result<Json> run() {
    Json root;
    Status status = value(root, 0);
    if (status.ok()) {
      space();
      if (!rest_.empty()) status = corrupt("text after the JSON value");
    }
    if (!status.ok()) return status.at(text_.size() - rest_.size());
    return root;
  }

 private:
  void space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool take(char c) {
    space();
    return take_word(rest_, std::string_view(&c, 1));
  }

  Status value(Json& out, size_t depth) {
    space();
    if (++values_ > Json::kMostValues)
      return unsupported(fmt::format("JSON of more than {} values", Json::kMostValues));
    if (rest_.starts_with('"')) {
      out.type_ = Json::Type::kText;
      return take_json_string(rest_, out.text_);
    }
    if (rest_.starts_with('{') || rest_.starts_with('[')) return nested(out, depth);
    if (take_word(rest_, "null")) return {};
    if (take_word(rest_, "true")) return out.type_ = Json::Type::kTrue, Status();
    if (take_word(rest_, "false")) return out.type_ = Json::Type::kFalse, Status();
    return number(out);
  }

  Status nested(Json& out, size_t depth) {
    if (depth == Json::kDeepest) return corrupt("JSON that nests too deep");
    const bool object = rest_[0] == '{';
    const char closing = object ? '}' : ']';
    rest_.remove_prefix(1);
    out.type_ = object ? Json::Type::kObject : Json::Type::kList;
    if (take(closing)) return {};
    do {
      if (object) {
        space();
        HEADRACE_TRY(take_json_string(rest_, out.names_.emplace_back()));
        if (!take(':')) return corrupt("a ':' is missing in the JSON");
      }
      HEADRACE_TRY(value(out.items_.emplace_back(), depth + 1));
    } while (take(','));
    if (take(closing)) return {};
    return corrupt(fmt::format("a ',' or '{}' is missing in the JSON", closing));
  }

  Status number(Json& out) {
    out.type_ = Json::Type::kNumber;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
      if (take_word(rest_, word)) return out.text_ = word, Status();
    const size_t end = std::min(rest_.find_first_not_of("+-.0123456789eE"), rest_.size());
    double ignored = 0;
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + end, ignored);
    if (end == 0 || error == std::errc::invalid_argument || stop != rest_.data() + end)
      return corrupt("no JSON value");
    out.text_ = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return {};
  }

  const std::string_view text_;
  std::string_view rest_;
  size_t values_ = 0;
};

Result<Json> Json::parse(std::string_view text) {
  return JsonParser(text).run();
}

std::optional<uint64_t> Json::count() const {
  uint64_t number = 0;
  const char* end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(text_.data(), end, number);
  if (type_ != Type::kNumber || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

const Json* Json::find(std::string_view name) const {
  const auto it = std::find(names_.begin(), names_.end(), name);
  return it == names_.end() ? nullptr : &items_[static_cast<size_t>(it - names_.begin())];
}

Status take_json_string(std::string_view& rest, std::string& out) {
  if (!take_word(rest, "\"")) return corrupt("a '\"' is missing in the JSON");
  while (!rest.empty() && rest[0] != '"') {
    const size_t run = std::min(rest.find_first_of("\"\\"), rest.size());
    out += rest.substr(0, run);
    rest.remove_prefix(run);
    if (take_word(rest, "\\")) HEADRACE_TRY(take_escape(rest, out));
  }
  if (!take_word(rest, "\"")) return corrupt("a string of the JSON does not end");
  return {};
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out += '"';
}

}  // namespace headrace

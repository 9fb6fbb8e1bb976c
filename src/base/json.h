// SPDX-License-Identifier: Apache-2.0
//
// Json: a small JSON text (RFC 8259) as a tree.  For the descriptions that lie beside data
// (index.json and the like); samples and long lists are never read this way.
//
//   HEADRACE_ASSIGN(const Json index, Json::parse(text));
//   if (const Json* shards = index.find("shards")) for (const Json& shard : shards->items()) …
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace headrace {

// Immutable, hence thread-safe.
class Json {
 public:
  enum class Type : uint8_t { kNull, kFalse, kTrue, kNumber, kText, kList, kObject };
  static constexpr size_t kMostValues = size_t{4} << 20;  // some 400 MB of tree
  static constexpr size_t kDeepest = 64;

  // Bounded by kMostValues and kDeepest.  NaN, Infinity and -Infinity are numbers, as Python
  // writes them.  What is not JSON is kCorrupt at the first wrong byte.
  static Result<Json> parse(std::string_view text);

  Type type() const { return type_; }
  bool is_null() const { return type_ == Type::kNull; }
  bool is_text() const { return type_ == Type::kText; }
  bool is_list() const { return type_ == Type::kList; }
  bool is_object() const { return type_ == Type::kObject; }
  // Of a text: what it says.  Of a number: its digits.
  const std::string& text() const { return text_; }
  // A whole number from 0 on that 64 bits hold; else nothing.
  std::optional<uint64_t> count() const;
  // Of a list or an object; else empty.
  const std::vector<Json>& items() const { return items_; }
  const std::vector<std::string>& names() const { return names_; }  // of the items of an object
  // The member of that name; null where there is none, and where this is no object.
  const Json* find(std::string_view name) const;

 private:
  friend class JsonParser;
  Type type_ = Type::kNull;
  std::string text_;
  std::vector<Json> items_;
  std::vector<std::string> names_;
};

// Takes a string, quotes included, off the front of `rest` and resolves its escapes.
Status take_json_string(std::string_view& rest, std::string& out);

// The text as a JSON string, quotes included.
std::string json_quoted(std::string_view text);

}  // namespace headrace

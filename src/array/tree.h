// SPDX-License-Identifier: Apache-2.0
//
// Tree: plain data of any shape, as descriptions of arrays are handed about: between the openers,
// Python and the index that is kept.  What JSON has, and bytes, and arrays of numbers.
//
//   Tree d = Tree::map();
//   d.set("name", Tree("t2m"));
//   d.find("name")->text()
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

class Tree {
 public:
  enum class Type : uint8_t {
    kNull,
    kFalse,
    kTrue,
    kInt,
    kReal,
    kText,
    kBytes,
    kList,
    kMap,
    kNumbers,  // an array: a type of NumPy's ("<u8"), a shape, the elements; no axis: one number
    kTexts,    // a list of nothing but texts: there may be a million
  };
  static constexpr size_t kDeepest = 32;

  Tree() = default;
  explicit Tree(bool v) : type_(v ? Type::kTrue : Type::kFalse) {}
  explicit Tree(int64_t v) : type_(Type::kInt), integer_(v) {}
  explicit Tree(double v) : type_(Type::kReal), real_(v) {}
  explicit Tree(std::string v) : type_(Type::kText), text_(std::move(v)) {}
  explicit Tree(std::string_view v) : Tree(std::string(v)) {}
  explicit Tree(const char* v) : Tree(std::string(v)) {}
  static Tree bytes(Bytes b);
  static Tree list(std::vector<Tree> items = {});
  static Tree map();
  static Tree texts(std::vector<std::string> all);
  static Tree ints(const std::vector<int64_t>& all);
  static Tree numbers(std::string dtype, std::vector<int64_t> shape, Bytes elements);
  static Tree counts(const std::vector<uint64_t>& all);  // numbers, "<u8"

  Type type() const { return type_; }
  bool is_null() const { return type_ == Type::kNull; }
  bool is_text() const { return type_ == Type::kText; }
  bool is_list() const { return type_ == Type::kList; }
  bool is_map() const { return type_ == Type::kMap; }
  bool is_numbers() const { return type_ == Type::kNumbers; }
  bool is_true() const { return type_ == Type::kTrue; }

  int64_t integer() const { return type_ == Type::kInt ? integer_ : 0; }
  double real() const {
    return type_ == Type::kInt ? static_cast<double>(integer_) : type_ == Type::kReal ? real_ : 0;
  }
  // Of a text or bytes; of numbers their type.
  const std::string& text() const { return text_; }
  const std::vector<Tree>& items() const { return items_; }
  const std::vector<std::string>& names() const { return names_; }  // of a map's items
  const std::vector<std::string>& texts() const { return names_; }  // of kTexts
  const std::vector<int64_t>& shape() const { return shape_; }
  Bytes elements() const { return elements_; }  // of numbers

  // The member of that name; null where there is none, where it is null, and where this is no map.
  const Tree* find(std::string_view name) const;
  // Replaces, or adds at the end.
  void set(std::string name, Tree value);
  void add(Tree item) { items_.push_back(std::move(item)); }

  // Conveniences; what is of another type gives nothing of it.
  std::string text_of(std::string_view name) const;
  int64_t integer_of(std::string_view name, int64_t otherwise = 0) const;
  bool true_of(std::string_view name) const;
  std::vector<std::string> texts_of(std::string_view name) const;
  std::vector<int64_t> ints_of(std::string_view name) const;
  std::vector<uint64_t> counts_of(std::string_view name) const;

  bool operator==(const Tree&) const = default;

 private:
  Type type_ = Type::kNull;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<Tree> items_;
  std::vector<std::string> names_;  // of a map's items; all texts
  std::vector<int64_t> shape_;
  std::vector<std::byte> elements_;
};

// A few bytes a value: numbers of 8 bytes are kept as differences between rows, and of texts in a
// list what differs from the one before.
void pack_tree(const Tree& tree, std::vector<std::byte>& out);
// Any bytes are survived: what pack_tree() did not write is kCorrupt.
Result<Tree> unpack_tree(Bytes packed);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "array/tree.h"

#include <bit>
#include <cstring>

#include "index/varint.h"

namespace headrace {
namespace {

// Elements that unpacking makes of the bytes it is given: no more than so many for each.
constexpr uint64_t kMostFromAByte = 4096;
constexpr size_t kWord = 8;

bool is_words(const Tree& tree) {
  return tree.text() == "<u8" || tree.text() == "<i8";
}

uint64_t columns_of(const std::vector<int64_t>& shape) {
  return shape.size() > 1 && shape.back() > 0 ? static_cast<uint64_t>(shape.back()) : 1;
}

// Of a file's chunks each row is much like the one before.
void pack_words(Bytes elements, uint64_t columns, ByteVector& out) {
  std::vector<uint64_t> last(columns, 0);
  std::vector<uint64_t> step(columns, 0);
  const size_t count = elements.size() / kWord;
  for (size_t i = 0; i < count; ++i) {
    const auto value = load_le<uint64_t>(elements.subspan(i * kWord));
    const size_t c = i % columns;
    const uint64_t difference = value - last[c];
    put_varint(out, zigzag(static_cast<int64_t>(difference - step[c])));
    step[c] = difference;
    last[c] = value;
  }
}

void unpack_words(ByteReader& in, uint64_t columns, MutableBytes out) {
  std::vector<uint64_t> last(columns, 0);
  std::vector<uint64_t> step(columns, 0);
  for (size_t i = 0; i < out.size() / kWord && in.ok(); ++i) {
    const size_t c = i % columns;
    step[c] += static_cast<uint64_t>(in.signed_varint());
    last[c] += step[c];
    store_le(out.subspan(i * kWord), last[c]);
  }
}

void pack_text(const std::string& text, std::string& before, ByteVector& out) {
  size_t shared = 0;
  while (shared < text.size() && shared < before.size() && text[shared] == before[shared]) ++shared;
  put_varint(out, shared);
  put_text(out, std::string_view(text).substr(shared));
  before = text;
}

void pack_value(const Tree& tree, ByteVector& out) {
  out.push_back(static_cast<std::byte>(tree.type()));
  switch (tree.type()) {
    case Tree::Type::kNull:
    case Tree::Type::kFalse:
    case Tree::Type::kTrue:
      break;
    case Tree::Type::kInt:
      put_varint(out, zigzag(tree.integer()));
      break;
    case Tree::Type::kReal:
      put_le(out, std::bit_cast<uint64_t>(tree.real()));
      break;
    case Tree::Type::kText:
    case Tree::Type::kBytes:
      put_text(out, tree.text());
      break;
    case Tree::Type::kList:
    case Tree::Type::kMap: {
      put_varint(out, tree.items().size());
      for (size_t i = 0; i < tree.items().size(); ++i) {
        if (tree.is_map()) put_text(out, tree.names()[i]);
        pack_value(tree.items()[i], out);
      }
      break;
    }
    case Tree::Type::kTexts: {
      put_varint(out, tree.texts().size());
      std::string last;
      for (const std::string& text : tree.texts()) pack_text(text, last, out);
      break;
    }
    case Tree::Type::kNumbers:
      put_text(out, tree.text());
      put_varint(out, tree.shape().size());
      for (const int64_t n : tree.shape()) put_varint(out, zigzag(n));
      put_varint(out, tree.elements().size());
      if (is_words(tree))
        pack_words(tree.elements(), columns_of(tree.shape()), out);
      else
        put_bytes(out, tree.elements());
      break;
  }
}

class TreeReader {
 public:
  explicit TreeReader(Bytes packed) : in_(packed), room_(packed.size() * kMostFromAByte) {}

  Result<Tree> read() {
    Tree out = value(0);
    if (!in_.done()) return corrupt("is no description of arrays: damaged");
    return out;
  }

 private:
  Tree value(size_t depth) {
    const auto type = static_cast<Tree::Type>(in_.le<uint8_t>());
    if (depth > Tree::kDeepest) in_.fail();
    if (!in_.ok()) return {};
    switch (type) {
      case Tree::Type::kNull:
        return {};
      case Tree::Type::kFalse:
        return Tree(false);
      case Tree::Type::kTrue:
        return Tree(true);
      case Tree::Type::kInt:
        return Tree(in_.signed_varint());
      case Tree::Type::kReal:
        return Tree(std::bit_cast<double>(in_.le<uint64_t>()));
      case Tree::Type::kText:
        return Tree(in_.text());
      case Tree::Type::kBytes:
        return Tree::bytes(as_bytes(in_.text()));
      case Tree::Type::kList:
      case Tree::Type::kMap:
        return items(type, depth);
      case Tree::Type::kTexts:
        return texts();
      case Tree::Type::kNumbers:
        return numbers();
    }
    in_.fail();
    return {};
  }

  Tree texts() {
    std::vector<std::string> out;
    std::string last;
    for (uint64_t left = in_.count(); left > 0 && in_.ok(); --left) {
      const uint64_t shared = in_.varint();
      const std::string_view rest = in_.text();
      if (shared > last.size() || shared > room_) return fail();
      room_ -= shared;
      last.resize(shared);
      last.append(rest);
      out.push_back(last);
    }
    return Tree::texts(std::move(out));
  }

  Tree items(Tree::Type type, size_t depth) {
    Tree out = type == Tree::Type::kMap ? Tree::map() : Tree::list();
    for (uint64_t left = in_.count(); left > 0 && in_.ok(); --left) {
      std::string name;
      if (type == Tree::Type::kMap) name = in_.text();
      Tree item = value(depth + 1);
      if (type == Tree::Type::kMap)
        out.set(std::move(name), std::move(item));
      else
        out.add(std::move(item));
    }
    return out;
  }

  Tree numbers() {
    std::string dtype(in_.text());
    std::vector<int64_t> shape(in_.count());
    for (int64_t& n : shape) n = in_.signed_varint();
    const uint64_t bytes = in_.varint();
    if (!in_.ok() || shape.size() > Tree::kDeepest) return fail();
    if (dtype == "<u8" || dtype == "<i8") {
      // A word takes a byte at least.
      if (bytes % kWord != 0 || bytes / kWord > in_.left()) return fail();
      const uint64_t columns = columns_of(shape);
      if (columns > 64) return fail();
      std::vector<std::byte> elements(bytes);
      unpack_words(in_, columns, elements);
      return Tree::numbers(std::move(dtype), std::move(shape), elements);
    }
    const Bytes elements = in_.take(bytes);
    return Tree::numbers(std::move(dtype), std::move(shape), elements);
  }

  Tree fail() {
    in_.fail();
    return {};
  }

  ByteReader in_;
  uint64_t room_;  // what texts may still repeat of each other
};

}  // namespace

Tree Tree::bytes(Bytes b) {
  Tree out;
  out.type_ = Type::kBytes;
  out.text_ = as_text(b);
  return out;
}

Tree Tree::list(std::vector<Tree> items) {
  Tree out;
  out.type_ = Type::kList;
  out.items_ = std::move(items);
  return out;
}

Tree Tree::map() {
  Tree out;
  out.type_ = Type::kMap;
  return out;
}

Tree Tree::texts(std::vector<std::string> all) {
  Tree out;
  out.type_ = Type::kTexts;
  out.names_ = std::move(all);
  return out;
}

Tree Tree::ints(const std::vector<int64_t>& all) {
  Tree out = list();
  for (const int64_t one : all) out.add(Tree(one));
  return out;
}

Tree Tree::numbers(std::string dtype, std::vector<int64_t> shape, Bytes elements) {
  Tree out;
  out.type_ = Type::kNumbers;
  out.text_ = std::move(dtype);
  out.shape_ = std::move(shape);
  out.elements_.assign(elements.begin(), elements.end());
  return out;
}

Tree Tree::counts(const std::vector<uint64_t>& all) {
  return numbers("<u8", {static_cast<int64_t>(all.size())}, std::as_bytes(std::span(all)));
}

const Tree* Tree::find(std::string_view name) const {
  if (!is_map()) return nullptr;
  for (size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == name) return items_[i].is_null() ? nullptr : &items_[i];
  return nullptr;
}

void Tree::set(std::string name, Tree value) {
  for (size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == name) {
      items_[i] = std::move(value);
      return;
    }
  names_.push_back(std::move(name));
  items_.push_back(std::move(value));
}

std::string Tree::text_of(std::string_view name) const {
  const Tree* found = find(name);
  return found != nullptr && (found->is_text() || found->type() == Type::kBytes) ? found->text()
                                                                                 : std::string();
}

int64_t Tree::integer_of(std::string_view name, int64_t otherwise) const {
  const Tree* found = find(name);
  return found != nullptr && found->type() == Type::kInt ? found->integer() : otherwise;
}

bool Tree::true_of(std::string_view name) const {
  const Tree* found = find(name);
  return found != nullptr && found->is_true();
}

std::vector<std::string> Tree::texts_of(std::string_view name) const {
  const Tree* found = find(name);
  return found != nullptr && found->type() == Type::kTexts ? found->texts()
                                                           : std::vector<std::string>();
}

std::vector<int64_t> Tree::ints_of(std::string_view name) const {
  std::vector<int64_t> out;
  if (const Tree* found = find(name))
    for (const Tree& item : found->items()) out.push_back(item.integer());
  return out;
}

std::vector<uint64_t> Tree::counts_of(std::string_view name) const {
  const Tree* found = find(name);
  if (found == nullptr) return {};
  if (!found->is_numbers()) {
    std::vector<uint64_t> out;
    for (const Tree& item : found->items()) out.push_back(static_cast<uint64_t>(item.integer()));
    return out;
  }
  std::vector<uint64_t> out(found->elements().size() / kWord);
  if (is_words(*found) && !out.empty())
    std::memcpy(out.data(), found->elements().data(), out.size() * kWord);
  return out;
}

void pack_tree(const Tree& tree, std::vector<std::byte>& out) {
  pack_value(tree, out);
}

Result<Tree> unpack_tree(Bytes packed) {
  return TreeReader(packed).read();
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "format/parquet/rows.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "base/half.h"
#include "format/parquet/types.h"

namespace headrace {
namespace {

template <typename T>
T element(const ArrowArray& array, int buffer, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const std::byte*>(array.buffers[buffer]) + i * int64_t{sizeof(T)},
              sizeof v);
  return v;
}

bool bit(const void* bits, int64_t i) {
  return (static_cast<const uint8_t*>(bits)[i / 8] >> (i % 8) & 1) != 0;
}

// A node of a column: its type and its buffers.  Rows are counted from the array's offset.
// Checks what it touches, as far as the interface lets it: buffers have no lengths there.
class Node {
 public:
  Node(const ArrowSchema& schema, const ArrowArray& array)
      : schema_(&schema),
        array_(&array),
        format_(schema.format == nullptr ? "" : schema.format),
        may_be_null_(array.null_count != 0 && array.n_buffers > 0 && array.buffers[0] != nullptr) {}

  std::string_view format() const { return format_; }
  bool is_struct() const { return format_ == "+s"; }
  bool is_list() const { return arrow_is_list(format_); }
  bool is_null(int64_t i) const {
    return may_be_null_ && !bit(array_->buffers[0], array_->offset + i);
  }

  Result<Node> child() const {
    if (schema_->n_children != 1 || array_->n_children != 1)
      return internal("a column of several leaves, where one is wanted");
    return Node(*schema_->children[0], *array_->children[0]);
  }
  Result<Node> dictionary() const {
    if (schema_->dictionary == nullptr || array_->dictionary == nullptr)
      return corrupt("a dictionary is missing");
    return Node(*schema_->dictionary, *array_->dictionary);
  }
  bool has_dictionary() const { return schema_->dictionary != nullptr; }

  // Where the child of row i of a struct stands.
  int64_t in_struct(int64_t i) const { return array_->offset + i; }

  // The elements of row i of a list, in its child.
  Status range(int64_t i, int64_t& begin, int64_t& end) const {
    const int64_t at = array_->offset + i;
    if (const auto size = arrow_fixed_size(format_); size) {
      begin = at * *size;
      end = begin + *size;
    } else if (format_ == "+l") {
      begin = element<int32_t>(*array_, 1, at);
      end = element<int32_t>(*array_, 1, at + 1);
    } else if (format_ == "+L") {
      begin = element<int64_t>(*array_, 1, at);
      end = element<int64_t>(*array_, 1, at + 1);
    } else {
      const bool large = format_ == "+vL";
      begin = large ? element<int64_t>(*array_, 1, at) : element<int32_t>(*array_, 1, at);
      end = begin + (large ? element<int64_t>(*array_, 2, at) : element<int32_t>(*array_, 2, at));
    }
    if (begin < 0 || end < begin || end > array_->children[0]->length)
      return corrupt("a list points past its elements");
    return {};
  }

  // The bytes of row i of a text or binary.
  Result<Bytes> bytes(int64_t i) const {
    const int64_t at = array_->offset + i;
    if (format_ == "u" || format_ == "z")
      return stretch(element<int32_t>(*array_, 1, at), element<int32_t>(*array_, 1, at + 1));
    if (format_ == "U" || format_ == "Z")
      return stretch(element<int64_t>(*array_, 1, at), element<int64_t>(*array_, 1, at + 1));
    if (const auto size = arrow_fixed_size(format_); size)
      return Bytes(static_cast<const std::byte*>(array_->buffers[1]) + at * *size,
                   static_cast<size_t>(*size));
    return view(at);
  }

  // A number of the dictionary, or a number that is a value.
  Result<int64_t> index(int64_t i) const {
    const auto type = arrow_number(format_);
    if (!type) return corrupt("a dictionary is counted by what is no number");
    return int_at(type->dtype, array_->offset + i);
  }

  bool truth(int64_t i) const { return bit(array_->buffers[1], array_->offset + i); }
  Bytes numbers(DType dtype, int64_t begin, int64_t end) const {
    const auto size = static_cast<int64_t>(size_of(dtype));
    if (begin == end) return {};
    return {static_cast<const std::byte*>(array_->buffers[1]) + (array_->offset + begin) * size,
            static_cast<size_t>((end - begin) * size)};
  }
  int64_t length() const { return array_->length; }
  // What all values of a text or binary take; 0 where that takes a look at each.
  uint64_t all_bytes() const {
    const int64_t begin = array_->offset;
    const int64_t end = begin + array_->length;
    if (array_->length == 0 || has_dictionary()) return 0;
    int64_t bytes = 0;
    if (format_ == "u" || format_ == "z")
      bytes = int64_t{element<int32_t>(*array_, 1, end)} - element<int32_t>(*array_, 1, begin);
    else if (format_ == "U" || format_ == "Z")
      bytes = element<int64_t>(*array_, 1, end) - element<int64_t>(*array_, 1, begin);
    return bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
  }

  int64_t int_at(DType dtype, int64_t at) const {
    switch (dtype) {
      case DType::kI8:
        return element<int8_t>(*array_, 1, at);
      case DType::kU8:
        return element<uint8_t>(*array_, 1, at);
      case DType::kI16:
        return element<int16_t>(*array_, 1, at);
      case DType::kU16:
        return element<uint16_t>(*array_, 1, at);
      case DType::kI32:
        return element<int32_t>(*array_, 1, at);
      case DType::kU32:
        return element<uint32_t>(*array_, 1, at);
      default:
        return element<int64_t>(*array_, 1, at);
    }
  }

  double float_at(DType dtype, int64_t i) const {
    const int64_t at = array_->offset + i;
    if (dtype == DType::kF16)
      return static_cast<double>(from_f16(element<uint16_t>(*array_, 1, at)));
    if (dtype == DType::kF32) return static_cast<double>(element<float>(*array_, 1, at));
    return element<double>(*array_, 1, at);
  }

 private:
  Result<Bytes> stretch(int64_t begin, int64_t end) const {
    if (begin < 0 || end < begin) return corrupt("a value ends before it begins");
    if (begin == end) return Bytes();
    return Bytes(static_cast<const std::byte*>(array_->buffers[2]) + begin,
                 static_cast<size_t>(end - begin));
  }

  // i32 length; up to 12 bytes themselves, or 4 of them, the number of a buffer, and where in it.
  Result<Bytes> view(int64_t at) const {
    const auto* entry = static_cast<const std::byte*>(array_->buffers[1]) + 16 * at;
    const Bytes raw(entry, 16);
    const auto length = load_le<int32_t>(raw);
    if (length < 0) return corrupt("a value has a length below 0");
    if (length <= 12) return raw.subspan(4, static_cast<size_t>(length));
    const auto buffer = load_le<int32_t>(raw.subspan(8));
    const auto begin = load_le<int32_t>(raw.subspan(12));
    if (buffer < 0 || buffer >= array_->n_buffers - 3) return corrupt("a value is in no buffer");
    const auto room = element<int64_t>(*array_, static_cast<int>(array_->n_buffers - 1), buffer);
    if (begin < 0 || begin > room || length > room - begin)
      return corrupt("a value points past its buffer");
    return Bytes(static_cast<const std::byte*>(array_->buffers[2 + buffer]) + begin,
                 static_cast<size_t>(length));
  }

  const ArrowSchema* schema_;
  const ArrowArray* array_;
  std::string_view format_;
  bool may_be_null_;
};

// Follows a dictionary: the node with the values, and where in it; false for a null.
Result<bool> resolve(const Node& node, int64_t i, std::optional<Node>& values, int64_t& at) {
  if (node.is_null(i)) return false;
  HEADRACE_ASSIGN(at, node.index(i));
  HEADRACE_ASSIGN(Node dictionary, node.dictionary());
  if (at < 0 || at >= dictionary.length()) return corrupt("a value is not in its dictionary");
  if (dictionary.is_null(at)) return false;
  values.emplace(dictionary);
  return true;
}

class Rows {
 public:
  explicit Rows(RowTableBuilder& out) : out_(out) {}

  Status row(const Node& node, int64_t i) {
    if (node.is_struct()) {
      if (node.is_null(i)) return {};
      HEADRACE_ASSIGN(const Node child, node.child());
      return row(child, node.in_struct(i));
    }
    if (!node.is_list()) return leaf(node, i);
    if (node.is_null(i)) return {};
    int64_t begin = 0;
    int64_t end = 0;
    HEADRACE_TRY(node.range(i, begin, end));
    HEADRACE_ASSIGN(const Node child, node.child());
    HEADRACE_ASSIGN(const bool bytes, holds_bytes(child));
    if (bytes) {
      for (int64_t k = begin; k < end; ++k) {
        HEADRACE_ASSIGN(const bool there, is_there(child, k));
        if (!there) return {};
      }
      for (int64_t k = begin; k < end; ++k) HEADRACE_TRY(in_list(child, k));
      return {};
    }
    HEADRACE_ASSIGN(const bool several, holds_lists(child));
    return several ? add_lists(child, begin, end) : add_numbers(child, begin, end);
  }

 private:
  static Result<bool> holds_bytes(Node node) {
    while (node.is_struct() || node.is_list()) {
      HEADRACE_ASSIGN(node, node.child());
    }
    if (node.has_dictionary()) {
      HEADRACE_ASSIGN(Node values, node.dictionary());
      return arrow_is_binary(values.format());
    }
    return arrow_is_binary(node.format());
  }

  // Whether each element has a length of its own.
  static Result<bool> holds_lists(Node node) {
    while (node.is_struct()) {
      HEADRACE_ASSIGN(node, node.child());
    }
    return node.is_list() && !arrow_fixed_size(node.format());
  }

  // A value for each of the lists; none where a null is among them.
  Status add_lists(const Node& node, int64_t begin, int64_t end) {
    std::vector<size_t> ends;
    flat_.clear();
    has_null_ = false;
    for (int64_t i = begin; i < end; ++i) {
      HEADRACE_TRY(flatten_one(node, i));
      ends.push_back(flat_.size());
    }
    size_t from = 0;
    for (const size_t to : ends) {
      if (!has_null_) out_.add_value(Bytes(flat_).subspan(from, to - from));
      from = to;
    }
    return {};
  }

  // Whether a value of a list of bytes is none: the row then lacks the field, as in an Arrow file.
  static Result<bool> is_there(const Node& node, int64_t i) {
    if (node.is_null(i)) return false;
    if (node.is_struct()) {
      HEADRACE_ASSIGN(const Node child, node.child());
      return is_there(child, node.in_struct(i));
    }
    std::optional<Node> values;
    int64_t at = 0;
    return node.has_dictionary() ? resolve(node, i, values, at) : Result<bool>(true);
  }

  Status in_list(const Node& node, int64_t i) {
    if (!node.is_struct()) return leaf(node, i);
    HEADRACE_ASSIGN(const Node child, node.child());
    return in_list(child, node.in_struct(i));
  }

  Status leaf(const Node& node, int64_t i) {
    if (node.is_null(i)) return {};
    if (node.has_dictionary()) {
      std::optional<Node> values;
      int64_t at = 0;
      HEADRACE_ASSIGN(const bool there, resolve(node, i, values, at));
      return there ? leaf(*values, at) : Status();
    }
    if (arrow_is_binary(node.format())) {
      HEADRACE_ASSIGN(const Bytes value, node.bytes(i));
      out_.add_value(value);
      return {};
    }
    return add_numbers(node, i, i + 1);
  }

  // As one value; none where a null is among them.
  Status add_numbers(const Node& node, int64_t begin, int64_t end) {
    flat_.clear();
    has_null_ = false;
    HEADRACE_TRY(flatten(node, begin, end));
    if (!has_null_) out_.add_value(flat_);
    return {};
  }

  // The numbers below, one after the other.
  Status flatten(const Node& node, int64_t begin, int64_t end) {
    if (node.is_struct() || node.is_list() || node.has_dictionary()) {
      for (int64_t i = begin; i < end; ++i) HEADRACE_TRY(flatten_one(node, i));
      return {};
    }
    const auto type = arrow_number(node.format());
    if (!type) return internal("a column of another type than it was indexed as");
    if (type->is_bool) {
      for (int64_t i = begin; i < end; ++i) {
        has_null_ = has_null_ || node.is_null(i);
        flat_.push_back(std::byte{node.truth(i)});
      }
      return {};
    }
    const Bytes raw = node.numbers(type->dtype, begin, end);
    flat_.insert(flat_.end(), raw.begin(), raw.end());
    for (int64_t i = begin; i < end; ++i) has_null_ = has_null_ || node.is_null(i);
    return {};
  }

  Status flatten_one(const Node& node, int64_t i) {
    if (node.has_dictionary()) {
      std::optional<Node> values;
      int64_t at = 0;
      HEADRACE_ASSIGN(const bool there, resolve(node, i, values, at));
      if (there) return flatten(*values, at, at + 1);
      has_null_ = true;
      return {};
    }
    if (node.is_null(i)) {
      has_null_ = true;
      return {};
    }
    HEADRACE_ASSIGN(const Node child, node.child());
    if (node.is_struct()) return flatten(child, node.in_struct(i), node.in_struct(i) + 1);
    int64_t begin = 0;
    int64_t end = 0;
    HEADRACE_TRY(node.range(i, begin, end));
    return flatten(child, begin, end);
  }

  RowTableBuilder& out_;
  std::vector<std::byte> flat_;
  bool has_null_ = false;  // among the numbers at hand
};

class Numbers {
 public:
  explicit Numbers(ParquetNumbers& out) : out_(out) {}

  Status row(const Node& node, int64_t i) {
    if (node.is_null(i)) return absent();
    if (node.is_struct()) {
      HEADRACE_ASSIGN(const Node child, node.child());
      return row(child, node.in_struct(i));
    }
    if (node.has_dictionary()) {
      std::optional<Node> values;
      int64_t at = 0;
      HEADRACE_ASSIGN(const bool there, resolve(node, i, values, at));
      return there ? row(*values, at) : absent();
    }
    const auto type = arrow_number(node.format());
    if (!type) return internal("a column of another type than it was indexed as");
    if (type->is_bool) return add(int64_t{node.truth(i)});
    if (type->dtype == DType::kF16 || type->dtype == DType::kF32 || type->dtype == DType::kF64) {
      out_.ints.push_back(0);
      out_.floats.push_back(node.float_at(type->dtype, i));
      out_.present.push_back(true);
      return {};
    }
    HEADRACE_ASSIGN(const int64_t number, node.index(i));
    if (type->dtype == DType::kU64 && number < 0) return unsupported("a number above 2^63");
    return add(number);
  }

 private:
  Status add(int64_t number) {
    out_.ints.push_back(number);
    out_.floats.push_back(0);
    out_.present.push_back(true);
    return {};
  }
  Status absent() {
    out_.ints.push_back(0);
    out_.floats.push_back(0);
    out_.present.push_back(false);
    return {};
  }
  ParquetNumbers& out_;
};

}  // namespace

Status add_numbers(const ArrowSchema& schema, const ArrowArray& column, ParquetNumbers& out) {
  const Node node(schema, column);
  Numbers numbers(out);
  for (int64_t i = 0; i < column.length; ++i) HEADRACE_TRY(numbers.row(node, i));
  return {};
}

Status add_rows(const ArrowSchema& schema, const ArrowArray& column, RowTableBuilder& out) {
  const Node node(schema, column);
  Node leaf = node;
  while (leaf.is_struct() || leaf.is_list()) {
    HEADRACE_ASSIGN(leaf, leaf.child());
  }
  out.reserve(static_cast<uint64_t>(column.length), static_cast<uint64_t>(leaf.length()),
              leaf.all_bytes());
  Rows rows(out);
  for (int64_t i = 0; i < column.length; ++i) {
    if (Status s = rows.row(node, i); !s.ok()) return s.with(fmt::format("row {}", i));
    out.end_row();
  }
  return {};
}

}  // namespace headrace

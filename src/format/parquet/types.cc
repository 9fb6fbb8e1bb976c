// SPDX-License-Identifier: Apache-2.0
#include "format/parquet/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/bytes.h"
#include "format/arrow/times.h"

namespace headrace {
namespace {

constexpr int kMaxDepth = 64;  // of lists and structs within each other

std::string_view format_of(const ArrowSchema& schema) {
  return schema.format == nullptr ? std::string_view() : schema.format;
}

std::string_view name_of(const ArrowSchema& schema) {
  return schema.name == nullptr ? std::string_view() : schema.name;
}

const ArrowSchema* child_named(const ArrowSchema& schema, std::string_view name) {
  for (int64_t i = 0; i < schema.n_children; ++i)
    if (name_of(*schema.children[i]) == name) return schema.children[i];
  return nullptr;
}

// How Hugging Face and others keep files: their bytes, and what they were called.
bool is_file(const ArrowSchema& schema) {
  if (format_of(schema) != "+s" || schema.n_children != 2) return false;
  const ArrowSchema* bytes = child_named(schema, "bytes");
  const ArrowSchema* path = child_named(schema, "path");
  return bytes != nullptr && path != nullptr && bytes->dictionary == nullptr &&
         arrow_is_binary(format_of(*bytes)) && !arrow_is_text(format_of(*bytes)) &&
         path->dictionary == nullptr && arrow_is_text(format_of(*path));
}

// A type that no field holds, as a person says it: Arrow's interface has letters.
std::string type_words(std::string_view format) {
  if (format == "n") return "nothing but nulls (the type null)";
  if (format.starts_with("d:")) {
    std::string digits(format.substr(2));
    digits = digits.substr(0, digits.find(',', digits.find(',') + 1));  // without the bits
    return fmt::format("a decimal({}) (pyarrow casts it to float64)", digits);
  }
  if (format.starts_with("ti")) return "an interval of time";
  if (format == "+r") return "run-end encoded";
  return fmt::format("of the type '{}' (Arrow's C name)", format);
}

// Of dates and times: what they are, and the unit as NumPy calls it; "" of other numbers.
std::pair<std::string_view, std::string_view> time_words(std::string_view format) {
  static constexpr std::array<std::pair<char, std::string_view>, 4> kUnits = {
      {{'s', "s"}, {'m', "ms"}, {'u', "us"}, {'n', "ns"}}};
  if (format == "tdD") return {"date", "D"};
  if (format == "tdm") return {"date", "ms"};
  if (format.size() < 3 || format[0] != 't') return {};
  const std::string_view what = format[1] == 's'   ? "timestamp"
                                : format[1] == 't' ? "time"
                                : format[1] == 'D' ? "duration"
                                                   : "";
  for (const auto& [letter, unit] : kUnits)
    if (format[2] == letter && !what.empty()) return {what, unit};
  return {};
}

bool is_number(Kind kind) {
  return kind == Kind::kInt || kind == Kind::kFloat;
}

// Walks the tree from left to right.  One thread at a time.
class Walker {
 public:
  Status column(const ArrowSchema& schema) {
    return node(schema, {.name = std::string(name_of(schema))});
  }
  ParquetLeaves take() { return std::move(out_); }

 private:
  using Shape = std::vector<int64_t>;
  // What lies above a node.
  struct Above {
    std::string name;
    Shape shape = {};       // of the lists
    std::string kind = {};  // as a list's metadata says
    int depth = 0;
  };

  Status node(const ArrowSchema& schema, Above above) {
    const std::string& name = above.name;
    if (++above.depth > kMaxDepth)
      return unsupported(fmt::format("column '{}' is nested too deep", name));
    if (std::string kind = arrow_metadata(schema, kArrowKind); !kind.empty())
      above.kind = std::move(kind);
    const std::string_view format = format_of(schema);
    if (format == "+s") return children(schema, above);
    if (format == "+m" || format.starts_with("+u") || format == "+r")
      return skip(schema, name, format == "+m" ? "a map" : "a union");
    if (arrow_is_list(format)) {
      if (schema.n_children != 1) return corrupt(fmt::format("column '{}' does not parse", name));
      above.shape.push_back(arrow_fixed_size(format).value_or(kVaries));
      return node(*schema.children[0], above);
    }
    leaf(schema, above);
    return {};
  }

  Status children(const ArrowSchema& schema, const Above& above) {
    const std::string& name = above.name;
    const bool file = is_file(schema);
    const auto first = out_.leaves;
    for (int64_t i = 0; i < schema.n_children; ++i) {
      const ArrowSchema& child = *schema.children[i];
      const bool is_bytes = file && name_of(child) == "bytes";
      Above inside = above;
      if (!is_bytes) inside.name = fmt::format("{}.{}", name, name_of(child));
      HEADRACE_TRY(node(child, inside));
      if (is_bytes && !out_.fields.empty() && out_.fields.back().field.name == name)
        out_.fields.back().names = first + (i == 0 ? 1u : 0u);
    }
    return {};
  }

  // A column that is left out, and all below it.
  Status skip(const ArrowSchema& schema, const std::string& name, std::string_view what) {
    out_.notices.push_back(
        fmt::format("column '{}' is {}, which no field holds: left out", name, what));
    HEADRACE_ASSIGN(const uint32_t below, count(schema, 0));
    out_.leaves += below;
    return {};
  }

  static Result<uint32_t> count(const ArrowSchema& schema, int depth) {
    if (depth > kMaxDepth) return unsupported("a column is nested too deep");
    if (schema.n_children == 0 || schema.dictionary != nullptr) return 1u;
    uint32_t sum = 0;
    for (int64_t i = 0; i < schema.n_children; ++i) {
      HEADRACE_ASSIGN(const uint32_t below, count(*schema.children[i], depth + 1));
      sum += below;
    }
    return sum;
  }

  void leaf(const ArrowSchema& schema, const Above& above) {
    const std::string& name = above.name;
    const uint32_t number = out_.leaves++;
    const ArrowSchema& values = schema.dictionary != nullptr ? *schema.dictionary : schema;
    const std::string_view format = format_of(values);
    ParquetLeaf made{.field = {.name = name}, .leaf = number};
    std::string why;
    if (arrow_is_binary(format)) {
      why = bytes_field(above, format, made);
    } else if (const auto type = arrow_number(format); type) {
      why = number_field(above, *type, made);
      if (const auto [what, unit] = time_words(format); why.empty() && !unit.empty())
        out_.notices.push_back(time_notice(name, what, type->dtype, unit));
    } else {
      why = type_words(format);
    }
    const bool twice = std::any_of(out_.fields.begin(), out_.fields.end(),
                                   [&](const ParquetLeaf& f) { return f.field.name == name; });
    if (why.empty() && twice) why = "there twice";
    if (why.empty())
      out_.fields.push_back(std::move(made));
    else
      out_.notices.push_back(
          fmt::format("column '{}' is {}, which no field holds: left out", name, why));
  }

  static std::string bytes_field(const Above& above, std::string_view format, ParquetLeaf& made) {
    if (above.shape.size() > 1) return "a list of lists of bytes";
    Field& field = made.field;
    field.many = !above.shape.empty();
    made.is_key = field.name == kArrowKey && above.shape.empty();
    const std::string& said = above.kind;
    if (arrow_is_text(format)) {
      const bool json = said.empty() ? kind_of_extension(field.name) == Kind::kJson
                                     : kind_named(said) == Kind::kJson;
      field.kind = json ? Kind::kJson : Kind::kText;
      return {};
    }
    field.kind =
        said.empty() ? kind_of_extension(field.name) : kind_named(said).value_or(Kind::kBytes);
    if (is_number(field.kind) || field.kind == Kind::kArray || field.kind == Kind::kTokens)
      field.kind = Kind::kBytes;
    made.by_inspection = field.kind == Kind::kBytes && said.empty();
    return {};
  }

  static std::string number_field(const Above& above, const ParquetNumber& type,
                                  ParquetLeaf& made) {
    const Shape& shape = above.shape;
    Field& field = made.field;
    field.dtype = type.dtype;
    if (shape.empty()) {
      const bool is_float =
          type.dtype == DType::kF16 || type.dtype == DType::kF32 || type.dtype == DType::kF64;
      field.kind = is_float ? Kind::kFloat : Kind::kInt;
      field.storage = Storage::kInline;
      return {};
    }
    // Lists of lists: several values, each with a length of its own, as of an Arrow file.
    if (std::find(shape.begin() + 1, shape.end(), kVaries) != shape.end()) {
      if (std::find(shape.begin() + 2, shape.end(), kVaries) != shape.end())
        return "lists within lists within lists, of different lengths";
      field.kind = Kind::kArray;
      field.many = true;
      field.shape = {shape.begin() + 1, shape.end()};
      return {};
    }
    const bool tokens = shape == Shape{kVaries} && kind_named(above.kind) == Kind::kTokens;
    field.kind = tokens ? Kind::kTokens : Kind::kArray;
    if (!tokens) field.shape = shape;
    return {};
  }

  ParquetLeaves out_;
};

}  // namespace

Result<ParquetLeaves> arrow_leaves(const ArrowSchema& schema) {
  if (format_of(schema) != "+s") return corrupt("the columns do not parse");
  Walker walker;
  for (int64_t i = 0; i < schema.n_children; ++i) HEADRACE_TRY(walker.column(*schema.children[i]));
  return walker.take();
}

std::optional<ParquetNumber> arrow_number(std::string_view format) {
  if (format == "b") return ParquetNumber{DType::kU8, true};
  if (format == "tdD" || format == "tts" || format == "ttm") return ParquetNumber{DType::kI32};
  if (format == "tdm" || format == "ttu" || format == "ttn" || format.starts_with("ts") ||
      format.starts_with("tD"))
    return ParquetNumber{DType::kI64};
  constexpr std::string_view kLetters = "cCsSiIlLefg";
  constexpr std::array<DType, 11> kTypes = {DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                                            DType::kI32, DType::kU32, DType::kI64, DType::kU64,
                                            DType::kF16, DType::kF32, DType::kF64};
  const size_t at = format.size() == 1 ? kLetters.find(format[0]) : std::string_view::npos;
  if (at == std::string_view::npos) return {};
  return ParquetNumber{kTypes[at]};
}

bool arrow_is_text(std::string_view format) {
  return format == "u" || format == "U" || format == "vu";
}

bool arrow_is_binary(std::string_view format) {
  return arrow_is_text(format) || format == "z" || format == "Z" || format == "vz" ||
         format.starts_with("w:");
}

bool arrow_is_list(std::string_view format) {
  return format == "+l" || format == "+L" || format == "+vl" || format == "+vL" ||
         format.starts_with("+w:");
}

std::optional<int64_t> arrow_fixed_size(std::string_view format) {
  const size_t colon = format.find(':');
  if (!format.starts_with("+w:") && !format.starts_with("w:")) return {};
  const std::string_view digits = format.substr(colon + 1);
  int64_t size = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc() || stop != digits.data() + digits.size() || size < 0) return {};
  return size;
}

std::string arrow_metadata(const ArrowSchema& schema, std::string_view key) {
  const char* at = schema.metadata;
  if (at == nullptr) return {};
  const auto number = [&at] {
    int32_t n = 0;
    std::memcpy(&n, at, sizeof n);
    at += sizeof n;
    return n;
  };
  const auto text = [&]() -> std::string_view {
    const int32_t length = number();
    const std::string_view out(at, static_cast<size_t>(std::max(length, 0)));
    at += out.size();
    return out;
  };
  for (int32_t left = number(); left > 0; --left) {
    const std::string_view name = text();
    const std::string_view value = text();
    if (name == key) return std::string(value);
  }
  return {};
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "format/arrow/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "format/arrow/times.h"
#include "index/part.h"

namespace headrace {
namespace {

bool is_list(ArrowType type) {
  return type == ArrowType::kList || type == ArrowType::kLargeList;
}

bool is_text(ArrowType type) {
  return type == ArrowType::kUtf8 || type == ArrowType::kLargeUtf8 || type == ArrowType::kUtf8View;
}

bool is_blob(ArrowType type) {
  return is_text(type) || type == ArrowType::kBinary || type == ArrowType::kLargeBinary ||
         type == ArrowType::kBinaryView;
}

bool is_float(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

bool is_kind_of_bytes(Kind kind) {
  return kind <= Kind::kText;
}

// What headrace wrote says it; else the name does.  A string is text whatever its name, or JSON.
Kind kind_of_blob(const ArrowField& field, std::string_view name, std::string_view meta) {
  if (const std::optional<Kind> kind = kind_named(meta); kind && is_kind_of_bytes(*kind))
    return *kind;
  const Kind kind = kind_of_extension(name);
  if (is_text(field.type)) return kind == Kind::kJson ? Kind::kJson : Kind::kText;
  return is_kind_of_bytes(kind) ? kind : Kind::kBytes;
}

// The numbers after `"shape":` of a fixed-shape tensor's description.
std::optional<std::vector<int64_t>> shape_of_tensor(std::string_view json) {
  const size_t key = json.find("\"shape\"");
  const size_t open = json.find('[', key == std::string_view::npos ? json.size() : key);
  const size_t close = json.find(']', std::min(open, json.size()));
  if (close == std::string_view::npos) return {};
  std::string list(json.substr(open + 1, close - open - 1));
  std::erase(list, ' ');
  return parse_arrow_shape(list);
}

// Elements of a value, where no extent varies; empty where that is more than memory has.
std::optional<int64_t> elements_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(n, extent, &n)) return {};
  return n;
}

// A value of fixed length has exactly its elements; else the length tells.
bool is_shape_of(const std::vector<int64_t>& shape, const Field& list, int64_t items) {
  const auto varying = std::count(shape.begin(), shape.end(), kVaries);
  if (!list.shape.empty() && list.shape.front() == kVaries) return varying <= 1;
  return varying == 0 && elements_of(shape) == items;
}

// Walks the schema once.  One thread at a time.
class Planner {
 public:
  explicit Planner(const ArrowFileSchema& schema) : schema_(schema) {}

  ArrowColumns run() {
    for (const uint32_t column : schema_.columns) {
      meta_ = column;
      plan(column, schema_.fields[column].name, {});
    }
    return std::move(out_);
  }

 private:
  void plan(uint32_t node, const std::string& name, ArrowLeaf leaf) {
    const ArrowField& field = schema_.fields[node];
    leaf.node = node;
    if (field.dictionary) {
      ArrowFileSchema values;
      const auto value = plan_arrow_dictionary(schema_, node, values);
      if (!value) return skip(name, fmt::format("a dictionary of {}", type_name(field)));
      leaf.form = value->form;
      leaf.field = value->field;
      return add(name, std::move(leaf));
    }
    if (field.type == ArrowType::kStruct) return plan_struct(node, name, leaf);
    if (!leaf.list && field.type == ArrowType::kFixedSizeList && is_many())
      return plan_items(node, name, leaf);
    if (!leaf.list && is_list(field.type) && is_many()) return plan_items(node, name, leaf);
    if (plan_value(node, name, leaf)) return add(name, std::move(leaf));
    if (!leaf.list && (is_list(field.type) || field.type == ArrowType::kFixedSizeList))
      return plan_items(node, name, leaf);
    skip(name, type_name(field));
  }

  // {bytes, path} is how Hugging Face's data sets hold a picture or a sound.
  void plan_struct(uint32_t node, const std::string& name, const ArrowLeaf& leaf) {
    const ArrowField& field = schema_.fields[node];
    const auto child = [&](size_t i) -> const ArrowField& {
      return schema_.fields[field.children[i]];
    };
    bool is_media = field.children.size() == 2;
    for (size_t i = 0; is_media && i < 2; ++i)
      is_media = child(i).name == "bytes"  ? !is_text(child(i).type) && is_blob(child(i).type)
                 : child(i).name == "path" ? is_text(child(i).type)
                                           : false;
    for (const uint32_t number : field.children) {
      ArrowLeaf below = leaf;
      (leaf.list ? below.within : below.above).push_back(node);
      const std::string& own = schema_.fields[number].name;
      plan(number, is_media && own == "bytes" ? name : name + '.' + own, std::move(below));
    }
  }

  void plan_items(uint32_t node, const std::string& name, ArrowLeaf leaf) {
    leaf.list = node;
    plan(schema_.fields[node].children[0], name, std::move(leaf));
  }

 public:
  // A leaf that is one value; false where the type is none.
  bool plan_value(uint32_t node, const std::string& name, ArrowLeaf& leaf) {
    const ArrowField& field = schema_.fields[node];
    if (is_blob(field.type)) {
      leaf.form = ArrowForm::kBlob;
      leaf.field = {.name = name, .kind = kind_of_blob(field, name, meta(kArrowKindMeta))};
      return true;
    }
    if (field.type == ArrowType::kFixedSizeBinary && field.width > 0) {
      leaf.form = ArrowForm::kFixed;
      leaf.numbers = node;
      leaf.stride = static_cast<uint64_t>(field.width);
      leaf.field = {.name = name, .kind = kind_of_blob(field, name, meta(kArrowKindMeta))};
      return true;
    }
    if (field.type == ArrowType::kBool || field.dtype) return plan_number(field, name, leaf);
    return plan_array(node, name, leaf);
  }

 private:
  bool plan_number(const ArrowField& field, const std::string& name, ArrowLeaf& leaf) {
    leaf.form = ArrowForm::kNumber;
    const DType dtype = field.dtype.value_or(DType::kU8);
    leaf.field = {.name = name,
                  .kind = is_float(dtype) ? Kind::kFloat : Kind::kInt,
                  .storage = Storage::kInline,
                  .dtype = dtype};
    if (const auto wanted = own(kArrowDTypeMeta))
      leaf.field.dtype = wanted->empty() ? std::nullopt : dtype_named(*wanted);
    if (field.type != ArrowType::kInt && field.type != ArrowType::kFloat &&
        field.type != ArrowType::kBool)
      notice(time_notice(name, type_name(field), dtype, field.unit));
    return true;
  }

  // Numbers under lists: at most the outermost varies.
  bool plan_array(uint32_t node, const std::string& name, ArrowLeaf& leaf) {
    std::vector<int64_t> shape;
    uint32_t at = node;
    if (is_list(schema_.fields[at].type)) {
      shape.push_back(kVaries);
      at = schema_.fields[at].children[0];
    }
    while (schema_.fields[at].type == ArrowType::kFixedSizeList && !schema_.fields[at].dictionary) {
      shape.push_back(schema_.fields[at].width);
      at = schema_.fields[at].children[0];
    }
    const ArrowField& numbers = schema_.fields[at];
    if (shape.empty() || numbers.dictionary || !numbers.dtype) return false;
    const bool varies = shape.front() == kVaries;
    const auto items = elements_of({shape.begin() + (varies ? 1 : 0), shape.end()});
    if (!items || *items == 0 || *items > INT32_MAX) return false;
    leaf.form = varies ? ArrowForm::kVarying : ArrowForm::kFixed;
    leaf.numbers = at;
    leaf.stride = static_cast<uint64_t>(*items) * size_of(*numbers.dtype);
    leaf.field = {.name = name, .kind = Kind::kArray, .dtype = numbers.dtype, .shape = shape};
    take_own_shape(schema_.fields[node], *items, leaf.field);
    return true;
  }

  // As the tensor extension or headrace itself describes it, where that fits the numbers.
  void take_own_shape(const ArrowField& list, int64_t items, Field& out) {
    if (list.meta(kArrowExtensionName) == kArrowTensor) {
      const auto shape = shape_of_tensor(list.meta(kArrowExtensionData));
      if (shape && elements_of(*shape) == items) out.shape = *shape;
      if (list.meta(kArrowExtensionData).find("permutation") != std::string_view::npos)
        notice(fmt::format("column '{}' has its axes permuted: it is read as it lies", out.name));
    }
    if (meta(kArrowKindMeta).empty()) return;
    if (const auto wanted = own(kArrowDTypeMeta))
      if (const auto dtype = dtype_named(*wanted); dtype && size_of(*dtype) == size_of(*out.dtype))
        out.dtype = dtype;
    if (kind_named(meta(kArrowKindMeta)) == Kind::kTokens) {
      out.kind = Kind::kTokens;
      out.shape = {};
    } else if (const auto text = own(kArrowShapeMeta)) {
      const auto shape = parse_arrow_shape(*text);
      if (shape && is_shape_of(*shape, out, items)) out.shape = *shape;
    }
  }

  // Only a column that headrace wrote has one; it may say that none was known.
  std::optional<std::string_view> own(std::string_view key) const {
    for (const auto& [name, value] : schema_.fields[meta_].metadata)
      if (name == key) return value;
    return {};
  }
  std::string_view meta(std::string_view key) const { return schema_.fields[meta_].meta(key); }
  bool is_many() const { return !meta(kArrowManyMeta).empty(); }

  static std::string type_name(const ArrowField& field) {
    return std::string(arrow_type_name(field.type));
  }

  void add(const std::string& name, ArrowLeaf leaf) {
    leaf.field.name = name;
    leaf.field.many = leaf.list.has_value();
    const ArrowType type = schema_.fields[leaf.node].type;
    leaf.is_key = name == kArrowKey && leaf.form == ArrowForm::kBlob && !leaf.list &&
                  leaf.above.empty() && !schema_.fields[leaf.node].dictionary &&
                  type != ArrowType::kUtf8View && type != ArrowType::kBinaryView;
    if (name.empty()) return notice("a column without a name is not read");
    if (!names_.insert(name).second)
      return notice(fmt::format("a second column '{}' is not read", name));
    out_.leaves.push_back(std::move(leaf));
  }

  void skip(const std::string& name, const std::string& type) {
    if (type == "null")
      return notice(fmt::format("column '{}' has no values (type null): it is not read", name));
    notice(fmt::format("column '{}' of type {} is not supported: it is not read", name, type));
  }

  void notice(std::string text) {
    constexpr size_t kMaxNotices = 16;
    if (out_.notices.size() < kMaxNotices) out_.notices.push_back(std::move(text));
  }

  const ArrowFileSchema& schema_;
  uint32_t meta_ = 0;  // the column at hand: what headrace wrote about it stands there
  std::set<std::string> names_;
  ArrowColumns out_;
};

}  // namespace

ArrowColumns plan_arrow_columns(const ArrowFileSchema& schema) {
  return Planner(schema).run();
}

std::optional<ArrowLeaf> plan_arrow_dictionary(const ArrowFileSchema& schema, uint32_t field,
                                               ArrowFileSchema& values) {
  const uint32_t end = schema.fields[field].end;
  values = {.fields = {schema.fields.begin() + field, schema.fields.begin() + end}, .columns = {0}};
  values.fields[0].dictionary.reset();
  for (ArrowField& below : values.fields) {
    below.end -= field;
    for (uint32_t& child : below.children) child -= field;
  }
  ArrowLeaf leaf;
  if (!Planner(values).plan_value(0, values.fields[0].name, leaf)) return {};
  // Dictionaries within dictionaries, and values that are lists, are not followed.
  if (leaf.form == ArrowForm::kVarying) return {};
  return leaf;
}

std::string arrow_shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape)
    text += (text.empty() ? "" : ",") + (extent == kVaries ? "?" : std::to_string(extent));
  return text;
}

std::optional<std::vector<int64_t>> parse_arrow_shape(std::string_view text) {
  std::vector<int64_t> shape;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    int64_t extent = kVaries;
    if (item != "?") {
      const auto [stop, error] = std::from_chars(item.data(), item.data() + item.size(), extent);
      if (error != std::errc() || stop != item.data() + item.size() || extent < 0) return {};
    }
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "array/zarr_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "array/open_file.h"
#include "array/zarr_codecs.h"
#include "array/zarr_types.h"

namespace headrace {
namespace {

Result<Extents> extents_of(const Json* list, std::string_view what) {
  Extents out;
  if (list == nullptr || !list->is_list()) return corrupt(fmt::format("has no {}", what));
  for (const Json& item : list->items()) {
    const std::optional<uint64_t> n = item.count();
    if (!n || *n > uint64_t{1} << 62) return corrupt(fmt::format("has a {} that is none", what));
    out.push_back(static_cast<int64_t>(*n));
  }
  return out;
}

std::vector<std::string> axis_names(const Json* names, size_t axes) {
  std::vector<std::string> out = plain_dims(axes);
  if (names == nullptr || names->items().size() != axes) return out;
  for (size_t i = 0; i < axes; ++i)
    if (names->items()[i].is_text() && !names->items()[i].text().empty())
      out[i] = names->items()[i].text();
  return out;
}

Tree said_by(const Json* attributes) {
  Tree out = Tree::map();
  if (attributes == nullptr || !attributes->is_object()) return out;
  for (size_t i = 0; i < attributes->names().size(); ++i)
    if (Tree value = tree_of(attributes->items()[i]); !value.is_null())
      out.set(attributes->names()[i], std::move(value));
  return out;
}

// base64 of eight bytes: how xarray writes the missing value of floats.
std::optional<double> double_of_base64(std::string_view text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() != 12 || text.back() != '=' || text[10] == '=') return std::nullopt;
  uint64_t bits = 0;
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < 11; ++i) {
    const size_t six = kLetters.find(text[i]);
    if (six == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | six;
    if (i % 4 != 0) bytes.push_back(static_cast<std::byte>(bits >> (6 - 2 * (i % 4))));
  }
  return load_le<double>(bytes);
}

// One array's metadata.  One thread at a time.
class ZarrParser {
 public:
  explicit ZarrParser(std::string name) { array().name = std::move(name); }

  Result<ZarrMetadata> version2(const Json& meta, const Json* attributes) {
    HEADRACE_ASSIGN(array().shape, extents_of(meta.find("shape"), "shape"));
    HEADRACE_ASSIGN(array().chunk, extents_of(meta.find("chunks"), "chunks"));
    const Json* dims = attributes == nullptr ? nullptr : attributes->find("_ARRAY_DIMENSIONS");
    file().dims = axis_names(dims, array().shape.size());
    const Json* dtype = meta.find("dtype");
    if (dtype == nullptr) return corrupt("has no dtype");
    const Json* order = meta.find("order");
    array().fortran = order != nullptr && order->text() == "F";
    type_ = zarr_type2(*dtype);
    if (!take_type(*dtype, said_by(attributes))) return std::move(out_);
    HEADRACE_TRY(take_fill(meta.find("fill_value"), type_.big_endian));
    const Status codecs =
        take_codecs2(meta.find("filters"), meta.find("compressor"), type_, file());
    if (codecs.code() == Code::kUnsupported) return by_python(codecs);
    HEADRACE_TRY(codecs);
    const Json* separator = meta.find("dimension_separator");
    HEADRACE_TRY(take_keys("", separator == nullptr ? "." : separator->text(), nullptr));
    take_missing(meta.find("fill_value"), dims != nullptr);
    return finish();
  }

  Result<ZarrMetadata> version3(const Json& meta) {
    const Json* grid = meta.find("chunk_grid");
    const Json* grid_name = grid == nullptr ? nullptr : grid->find("name");
    if (grid_name == nullptr) return corrupt("has no chunk_grid");
    HEADRACE_ASSIGN(array().shape, extents_of(meta.find("shape"), "shape"));
    if (grid_name->text() != "regular") {
      file().why = fmt::format("its chunk grid is '{}'; regular ones are read", grid_name->text());
      return std::move(out_);
    }
    const Json* configuration = grid->find("configuration");
    HEADRACE_ASSIGN(
        array().chunk,
        extents_of(configuration == nullptr ? nullptr : configuration->find("chunk_shape"),
                   "chunk_shape"));
    const Json* attributes = meta.find("attributes");
    const Json* dims = attributes == nullptr ? nullptr : attributes->find("_ARRAY_DIMENSIONS");
    file().dims =
        axis_names(dims == nullptr ? meta.find("dimension_names") : dims, array().shape.size());
    const Json* data_type = meta.find("data_type");
    if (data_type == nullptr) return corrupt("has no data_type");
    HEADRACE_ASSIGN(type_, zarr_type3(*data_type));
    if (!take_type(*data_type, said_by(attributes))) return std::move(out_);
    const Json* codecs = meta.find("codecs");
    if (codecs == nullptr || !codecs->is_list()) return corrupt("has no codecs");
    const Json* shard = nullptr;
    const Status taken = take_codecs3(*codecs, type_, file(), shard);
    if (taken.code() == Code::kUnsupported) return by_python(taken);
    HEADRACE_TRY(taken);
    HEADRACE_TRY(take_fill(meta.find("fill_value"), array().big_endian));
    HEADRACE_TRY(take_keys3(meta.find("chunk_key_encoding"), shard));
    if (const Tree* missing = said_.find("_FillValue"); missing != nullptr && missing->is_text())
      said_.set("_FillValue", missing_of(missing->text()));
    return finish();
  }

 private:
  FileArray& file() { return out_.array; }
  Array& array() { return *out_.array.array; }

  Result<ZarrMetadata> by_python(const Status& why) {
    file().by_python = why.text();
    array().dtype = type_.dtype().value_or(DType::kU8);  // a filter may have set another
    return std::move(out_);
  }

  // False: that is all that can be said of it.
  bool take_type(const Json& said, Tree attributes) {
    file().is_found = false;
    if (type_.kind == 'O') {
      file().by_python = "texts";
      return false;
    }
    if (!type_.dtype()) {
      file().why = fmt::format("its type is {}; numbers are wanted",
                               said.is_text() ? said.text() : "one of several members");
      return false;
    }
    take_zarr_type(type_, file(), said_);
    for (size_t i = 0; i < attributes.names().size(); ++i)
      said_.set(attributes.names()[i], attributes.items()[i]);
    return file().why.empty();
  }

  // Of complex numbers both parts must be one.
  Status take_fill(const Json* value, bool big_endian) {
    if (file().kind != Kind::kArray) return {};
    HEADRACE_ASSIGN(std::vector<std::byte> fill, zarr_fill(value, type_, big_endian));
    const auto half = fill.begin() + static_cast<ptrdiff_t>(fill.size() / 2);
    if (type_.kind == 'c') {
      if (!std::equal(fill.begin(), half, half))
        file().why = "its fill value has other real than imaginary parts";
      fill.erase(half, fill.end());
    }
    array().fill = std::move(fill);
    return {};
  }

  // Version 2: xarray keeps a missing value as the fill value alone; 0 is what zarr-python writes
  // where nobody said anything.
  void take_missing(const Json* fill, bool has_dims) {
    if (fill == nullptr || said_.find("_FillValue") != nullptr) return;
    const bool packed =
        said_.find("scale_factor") != nullptr || said_.find("add_offset") != nullptr;
    // Of truths: True stands for what is missing, as a number other than 0 does.
    const bool is_truth = fill->type() == Json::Type::kTrue || fill->type() == Json::Type::kFalse;
    const std::optional<double> number = zarr_number(*fill);
    if (!number || !(packed || (has_dims && *number != 0))) return;
    said_.set("_FillValue", is_truth ? Tree(*number != 0) : Tree(*number));
  }

  static Tree missing_of(const std::string& words) {
    for (const std::string_view known : {"NaN", "Infinity", "-Infinity"})
      if (words == known)
        return Tree(zarr_number(Json::parse("\"" + words + "\"").value()).value());
    const std::optional<double> number = double_of_base64(words);
    return number ? Tree(*number) : Tree();  // another text is no element of numbers
  }

  Status take_keys3(const Json* encoding, const Json* shard) {
    const Json* name = encoding == nullptr ? nullptr : encoding->find("name");
    if (name == nullptr) return corrupt("has no chunk_key_encoding");
    const bool is_default = name->text() == "default";
    const Json* options = encoding->find("configuration");
    const Json* separator = options == nullptr ? nullptr : options->find("separator");
    return take_keys(is_default ? "c" : "",
                     separator != nullptr ? separator->text()
                     : is_default         ? "/"
                                          : ".",
                     shard);
  }

  // An inner axis lies within an element, and is none of the grid's.
  Result<Extents> grid_of(const Extents& chunk) {
    const auto axes = static_cast<ptrdiff_t>(array().shape.size() - file().inner);
    return chunk_grid(array().name, {array().shape.begin(), array().shape.begin() + axes},
                      {chunk.begin(), chunk.begin() + axes});
  }

  Status take_keys(std::string lead, const std::string& separator, const Json* shard) {
    if (separator != "/" && separator != ".")
      return corrupt(fmt::format(
          "the parts of chunk keys are joined by '{}'; '.' and '/' are known", separator));
    if (array().chunk.size() != array().shape.size())
      return corrupt("has chunks of another rank than its shape");
    HEADRACE_ASSIGN(Extents grid, grid_of(array().chunk));
    out_.keys = {std::move(grid), std::move(lead), separator[0]};
    return shard == nullptr ? Status() : take_shards(*shard);
  }

  Status take_shards(const Json& options) {
    HEADRACE_ASSIGN(Extents inner, extents_of(options.find("chunk_shape"), "chunk_shape"));
    for (size_t i = 0; i < file().inner; ++i)
      inner.push_back(array().chunk[array().chunk.size() - file().inner + i]);
    ShardForm form{.shards = out_.keys.grid};
    if (inner.size() != array().chunk.size()) return corrupt("has shards of another rank");
    for (size_t a = 0; a < inner.size(); ++a) {
      if (inner[a] < 1 || array().chunk[a] % inner[a] != 0)
        return corrupt(
            fmt::format("has shards of {} that do not divide into chunks of {} along an axis",
                        array().chunk[a], inner[a]));
      if (a < inner.size() - file().inner) form.per_shard.push_back(array().chunk[a] / inner[a]);
    }
    const Json* codecs = options.find("index_codecs");
    std::vector<std::string> names;
    for (const Json& codec : codecs == nullptr ? std::vector<Json>() : codecs->items())
      if (const Json* called = codec.find("name")) names.push_back(called->text());
    const bool is_checked = names == std::vector<std::string>{"bytes", "crc32c"};
    if (!is_checked && names != std::vector<std::string>{"bytes"}) {
      file().why = fmt::format("the index of its shards is stored as {}, which is not read",
                               fmt::join(names, ", "));
      return {};
    }
    array().chunk = inner;
    HEADRACE_ASSIGN(form.chunks, grid_of(inner));
    const Json* place = options.find("index_location");
    form.at_start = place != nullptr && place->text() == "start";
    form.is_checked = is_checked;
    out_.shard = std::move(form);
    return {};
  }

  Result<ZarrMetadata> finish() {
    if (array().packed || file().kind != Kind::kArray) {
      for (size_t i = 0; i < said_.names().size(); ++i)
        if (is_plain_attribute(said_.names()[i]))
          file().attributes.set(said_.names()[i], said_.items()[i]);
    } else {
      unpack_by(said_, file());
    }
    return std::move(out_);
  }

  ZarrMetadata out_;
  ZarrType type_;
  Tree said_ = Tree::map();  // attributes, and what the type says besides
};

}  // namespace

Tree tree_of(const Json& value) {
  switch (value.type()) {
    case Json::Type::kFalse:
    case Json::Type::kTrue:
      return Tree(value.type() == Json::Type::kTrue);
    case Json::Type::kText:
      return Tree(value.text());
    case Json::Type::kNumber: {
      const std::string& t = value.text();
      int64_t whole = 0;
      const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), whole);
      if (error == std::errc() && end == t.data() + t.size()) return Tree(whole);
      return Tree(zarr_number(value).value_or(0));
    }
    case Json::Type::kList: {
      Tree out = Tree::list();
      for (const Json& item : value.items()) out.add(tree_of(item));
      return out;
    }
    default:
      return {};
  }
}

Result<ZarrMetadata> zarr_metadata(std::string name, const Json& document, const Json* attributes) {
  const Json* version = document.find("zarr_format");
  ZarrParser parser(std::move(name));
  return version != nullptr && version->text() == "3" ? parser.version3(document)
                                                      : parser.version2(document, attributes);
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "array/open_file.h"
#include "array/zarr_documents.h"
#include "array/zarr_shards.h"
#include "base/npy.h"
#include "storage/paths.h"

namespace headrace {
namespace {

std::optional<double> number_of(const Json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->type() == Json::Type::kTrue) return 1;
  if (value->type() == Json::Type::kFalse) return 0;
  const std::string& text = value->text();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (value->type() != Json::Type::kNumber) return std::nullopt;
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

Tree tree_of(const Json& value) {
  switch (value.type()) {
    case Json::Type::kFalse:
    case Json::Type::kTrue:
      return Tree(value.type() == Json::Type::kTrue);
    case Json::Type::kText:
      return Tree(value.text());
    case Json::Type::kNumber: {
      const bool is_whole = value.text().find_first_of(".eEnN") == std::string::npos;
      int64_t whole = 0;
      const std::string& t = value.text();
      if (is_whole && std::from_chars(t.data(), t.data() + t.size(), whole).ec == std::errc())
        return Tree(whole);
      return Tree(number_of(&value).value_or(0));
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

template <typename T>
void put_as(double value, std::vector<std::byte>& out) {
  const T v = static_cast<T>(value);
  out.resize(sizeof v);
  std::memcpy(out.data(), &v, sizeof v);
}

// One element as stored; false where this has no words for it.
bool fill_of_number(double value, DType dtype, bool big_endian, std::vector<std::byte>& out) {
  if (dtype == DType::kF64) {
    put_as<double>(value, out);
  } else if (dtype == DType::kF32) {
    put_as<float>(value, out);
  } else if (value == 0) {
    out.assign(size_of(dtype), std::byte{0});
  } else if (dtype == DType::kF16 || dtype == DType::kBF16 || value != std::floor(value) ||
             std::abs(value) >= 9e15) {
    return false;
  } else {
    const auto whole = static_cast<int64_t>(value);
    out.resize(size_of(dtype));
    std::memcpy(out.data(), &whole, out.size());
  }
  if (big_endian) std::reverse(out.begin(), out.end());
  return true;
}

// One array's metadata, of either version.  One thread at a time.
class ZarrArray {
 public:
  ZarrArray(const Store& store, std::string folder, const RunJobs& run)
      : store_(store), folder_(std::move(folder)), run_(run) {}

  Result<FileArray> version2(const Json& meta, const Json* attributes) {
    HEADRACE_ASSIGN(array().shape, extents_of(meta.find("shape"), "shape"));
    HEADRACE_ASSIGN(array().chunk, extents_of(meta.find("chunks"), "chunks"));
    const Json* dims = attributes == nullptr ? nullptr : attributes->find("_ARRAY_DIMENSIONS");
    name_axes(dims);
    const Json* type = meta.find("dtype");
    if (type == nullptr || !type->is_text() || !take_type(parse_npy_type(type->text())))
      return python("its type");
    const Json* order = meta.find("order");
    array().fortran = order != nullptr && order->text() == "F" && array().shape.size() > 1;
    if (const Json* filters = meta.find("filters"))
      for (const Json& codec : filters->items())
        if (!take_codec(codec.find("id"), codec)) return python("a filter");
    if (const Json* codec = meta.find("compressor"); codec != nullptr && codec->is_object())
      if (!take_codec(codec->find("id"), *codec)) return python("its compressor");
    const Json* fill = meta.find("fill_value");
    if (!take_fill(fill)) return python("its fill value");
    const Json* separator = meta.find("dimension_separator");
    HEADRACE_TRY(find(nullptr, "", separator == nullptr ? "." : separator->text()));
    Tree said = said_by(attributes);
    const bool packed = said.find("scale_factor") != nullptr || said.find("add_offset") != nullptr;
    const bool is_word =
        fill != nullptr && (fill->type() == Json::Type::kNumber || fill->is_text());
    const std::optional<double> number = is_word ? number_of(fill) : std::nullopt;
    // As xarray keeps a missing value; 0 is what zarr-python writes where nobody said anything.
    if ((packed || (dims != nullptr && number && *number != 0)) && number &&
        said.find("_FillValue") == nullptr)
      said.set("_FillValue", Tree(*number));
    // Of truths: True stands for what is missing, as a number other than 0 does.
    const bool is_true = fill != nullptr && fill->type() == Json::Type::kTrue;
    const bool is_truth = is_true || (fill != nullptr && fill->type() == Json::Type::kFalse);
    if (is_truth && (packed || (dims != nullptr && is_true)) && said.find("_FillValue") == nullptr)
      said.set("_FillValue", Tree(is_true));
    unpack_by(said, out_);
    return std::move(out_);
  }

  Result<FileArray> version3(const Json& meta) {
    const Json* grid = meta.find("chunk_grid");
    const Json* name = grid == nullptr ? nullptr : grid->find("name");
    const Json* configuration = grid == nullptr ? nullptr : grid->find("configuration");
    HEADRACE_ASSIGN(array().shape, extents_of(meta.find("shape"), "shape"));
    if (name == nullptr || name->text() != "regular" || configuration == nullptr)
      return python("its chunk grid");
    HEADRACE_ASSIGN(array().chunk, extents_of(configuration->find("chunk_shape"), "chunk_shape"));
    const Json* attributes = meta.find("attributes");
    const Json* dims = attributes == nullptr ? nullptr : attributes->find("_ARRAY_DIMENSIONS");
    name_axes(dims == nullptr ? meta.find("dimension_names") : dims);
    const Json* type = meta.find("data_type");
    if (type == nullptr || !type->is_text() || !take_name(type->text())) return python("its type");
    const Json* codecs = meta.find("codecs");
    const Json* shard = nullptr;
    if (codecs == nullptr || !take_codecs(*codecs, shard)) return python("its codecs");
    if (!take_fill(meta.find("fill_value"))) return python("its fill value");
    const Json* keys = meta.find("chunk_key_encoding");
    const Json* keys_name = keys == nullptr ? nullptr : keys->find("name");
    if (keys_name == nullptr) return corrupt("has no chunk_key_encoding");
    const bool is_default = keys_name->text() == "default";
    const Json* options = keys->find("configuration");
    const Json* separator = options == nullptr ? nullptr : options->find("separator");
    HEADRACE_TRY(find(shard, is_default ? "c" : "",
                      separator != nullptr ? separator->text()
                      : is_default         ? "/"
                                           : "."));
    const Tree said = said_by(attributes);
    // xarray writes the missing value of floats in base64, which Python reads.
    if (const Tree* missing = said.find("_FillValue"); missing != nullptr && missing->is_text())
      return python("its _FillValue");
    unpack_by(said, out_);
    return std::move(out_);
  }

 private:
  Array& array() { return *out_.array; }

  Result<FileArray> python(std::string_view what) {
    out_.by_python = fmt::format("{} is one that headrace in Python reads", what);
    out_.why = out_.by_python;
    return std::move(out_);
  }

  void name_axes(const Json* names) {
    out_.dims = plain_dims(array().shape.size());
    if (names == nullptr || names->items().size() != out_.dims.size()) return;
    for (size_t i = 0; i < out_.dims.size(); ++i)
      if (names->items()[i].is_text() && !names->items()[i].text().empty())
        out_.dims[i] = names->items()[i].text();
  }

  bool take_type(const Result<NpyType>& type) {
    if (!type.ok() || !type.value().dtype() || type.value().kind == 'M' ||
        type.value().kind == 'm' || type.value().kind == 'c')
      return false;
    array().dtype = *type.value().dtype();
    array().big_endian = type.value().big_endian;
    return true;
  }

  bool take_name(const std::string& name) {
    if (name == "bool") {
      array().dtype = DType::kU8;
      return true;
    }
    for (const auto& [word, letter] :
         {std::pair{"uint", "u"}, std::pair{"int", "i"}, std::pair{"float", "f"}})
      if (name.starts_with(word)) {
        const std::optional<DType> found = dtype_named(letter + name.substr(std::strlen(word)));
        if (found) array().dtype = *found;
        return found.has_value();
      }
    return false;
  }

  bool take_codec(const Json* name, const Json& options) {
    if (name == nullptr) return false;
    for (const std::string_view plain : {"zlib", "gzip", "lz4", "zstd", "blosc", "crc32c"})
      if (name->text() == plain) {
        array().filters.push_back({*chunk_filter_named(plain), 0});
        return true;
      }
    if (name->text() != "shuffle") return false;
    const Json* size = options.find("elementsize");
    const uint64_t bytes = size == nullptr ? size_of(array().dtype) : size->count().value_or(0);
    if (bytes == 0 || bytes > 4096) return false;
    array().filters.push_back({ChunkFilter::kShuffle, static_cast<uint32_t>(bytes)});
    return true;
  }

  bool take_codecs(const Json& codecs, const Json*& shard) {
    for (const Json& codec : codecs.items()) {
      const Json* name = codec.find("name");
      const Json* options = codec.find("configuration");
      if (name == nullptr) return false;
      if (name->text() == "sharding_indexed") {
        const Json* inner = options == nullptr ? nullptr : options->find("codecs");
        if (shard != nullptr || codecs.items().size() > 1 || inner == nullptr) return false;
        shard = options;
        const Json* below = options;
        if (!take_codecs(*inner, below) || below != options) return false;
      } else if (name->text() == "bytes") {
        const Json* endian = options == nullptr ? nullptr : options->find("endian");
        array().big_endian = endian != nullptr && endian->text() == "big";
      } else if (!take_codec(name, options == nullptr ? codec : *options)) {
        return false;
      }
    }
    return true;
  }

  bool take_fill(const Json* fill) {
    if (fill == nullptr || fill->is_null()) return true;
    const std::optional<double> number = number_of(fill);
    return number && fill_of_number(*number, array().dtype, array().big_endian, array().fill);
  }

  static Tree said_by(const Json* attributes) {
    Tree out = Tree::map();
    if (attributes == nullptr || !attributes->is_object()) return out;
    for (size_t i = 0; i < attributes->names().size(); ++i)
      out.set(attributes->names()[i], tree_of(attributes->items()[i]));
    return out;
  }

  // The chunks that are there.
  Status find(const Json* shard, std::string lead, const std::string& separator) {
    if (separator != "/" && separator != ".")
      return corrupt(fmt::format("the parts of chunk keys are joined by '{}'", separator));
    HEADRACE_ASSIGN(Extents grid, chunk_grid(array().name, array().shape, array().chunk));
    const ZarrKeys keys{grid, std::move(lead), separator[0]};
    HEADRACE_ASSIGN(const std::vector<ZarrFile> found,
                    list_zarr_chunks(store_, folder_, keys, run_));
    for (const ZarrFile& file : found) {
      out_.files.push_back(join_path(folder_, zarr_key(keys, file.chunk)));
      out_.file_bytes.push_back(file.bytes);
    }
    if (shard != nullptr) return find_in_shards(*shard, keys, found);
    array().places.resize(static_cast<size_t>(elements_in(grid)));
    for (size_t i = 0; i < found.size(); ++i)
      array().places[found[i].chunk] = {static_cast<uint32_t>(i), 0, 0, kWholeFile};
    return {};
  }

  Status find_in_shards(const Json& options, const ZarrKeys& keys,
                        const std::vector<ZarrFile>& found) {
    HEADRACE_ASSIGN(const Extents inner, extents_of(options.find("chunk_shape"), "chunk_shape"));
    ShardForm form{.shards = keys.grid};
    if (inner.size() != array().chunk.size()) return corrupt("has shards of another rank");
    for (size_t a = 0; a < inner.size(); ++a) {
      if (inner[a] < 1 || array().chunk[a] % inner[a] != 0)
        return corrupt("has shards that do not divide into its chunks");
      form.per_shard.push_back(array().chunk[a] / inner[a]);
    }
    array().chunk = inner;
    HEADRACE_ASSIGN(form.chunks, chunk_grid(array().name, array().shape, inner));
    const Json* place = options.find("index_location");
    form.at_start = place != nullptr && place->text() == "start";
    const Json* codecs = options.find("index_codecs");
    std::string names;
    for (const Json& codec : codecs == nullptr ? std::vector<Json>() : codecs->items())
      if (const Json* called = codec.find("name")) names += called->text() + " ";
    if (names != "bytes " && names != "bytes crc32c ") {
      out_.why = fmt::format("the index of its shards is stored as {}, which is not read", names);
      return {};
    }
    form.is_checked = names != "bytes ";
    HEADRACE_ASSIGN(array().places, read_shard_indexes(form, found, out_.files, store_, run_));
    return {};
  }

  const Store& store_;
  const std::string folder_;
  const RunJobs& run_;
  FileArray out_;

 public:
  void name(std::string called) { array().name = std::move(called); }
};

using Documents = std::map<std::string, Json>;

Result<Documents> documents_of(const ZarrDocuments& read) {
  Documents out;
  for (const auto& [name, text] : read.texts) {
    Result<Json> parsed = Json::parse(text);
    if (!parsed.ok()) return corrupt(fmt::format("{} is not JSON", name));
    if (name != read.consolidated) {
      out.emplace(name, std::move(parsed).value());
      continue;
    }
    const bool third = name == "zarr.json";
    const Json* all = third ? parsed.value().find("consolidated_metadata") : &parsed.value();
    const Json* below = all == nullptr ? nullptr : all->find("metadata");
    for (size_t i = 0; below != nullptr && i < below->names().size(); ++i)
      out.insert_or_assign(third ? below->names()[i] + "/zarr.json" : below->names()[i],
                           below->items()[i]);
    if (third) out.insert_or_assign(name, parsed.value());
  }
  return out;
}

}  // namespace

Result<OpenedFile> open_zarr(const Store& store, const std::string& root, const std::string& group,
                             const RunJobs& run) {
  HEADRACE_ASSIGN(ZarrDocuments read, read_zarr_documents(store, root, run));
  Result<Documents> parsed = documents_of(read);
  if (!parsed.ok()) return parsed.status().in_file(root);
  const Documents& documents = parsed.value();
  OpenedFile out{.looked_at = std::move(read.looked_at)};
  for (const auto& [name, document] : documents) {
    const std::string_view file = base_name(name);
    const Json* type = document.find("node_type");
    const bool is_third = file == "zarr.json" && type != nullptr && type->text() == "array";
    if (file != ".zarray" && !is_third) continue;
    const std::string folder = parent_folder(name);
    if (!group.empty() && folder != group && !folder.starts_with(group + "/")) continue;
    ZarrArray array(store, folder.empty() ? root : join_path(root, folder), run);
    std::string called = folder;
    if (!group.empty() && folder != group) called = folder.substr(group.size() + 1);
    array.name(folder.empty() ? "data" : folder == group ? std::string(base_name(folder)) : called);
    const auto attributes = documents.find(folder.empty() ? ".zattrs" : folder + "/.zattrs");
    Result<FileArray> made =
        is_third ? array.version3(document)
                 : array.version2(document,
                                  attributes == documents.end() ? nullptr : &attributes->second);
    if (!made.ok()) {
      const Status& status = made.status();
      return status.place().file.empty() ? status.in_file(join_path(root, folder)) : status;
    }
    out.arrays.push_back(std::move(made).value());
  }
  if (out.arrays.empty()) return not_found("holds no Zarr array").in_file(root);
  return out;
}

}  // namespace headrace

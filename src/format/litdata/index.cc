// SPDX-License-Identifier: Apache-2.0
#include "format/litdata/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "format/folder_index.h"
#include "index/part.h"

namespace headrace {
namespace {

std::string_view text_of(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  return member == nullptr || member->is_null() ? std::string_view() : member->text();
}

bool is_lit_index(const Json& json) {
  const Json* chunks = json.find("chunks");
  const Json* config = json.find("config");
  return chunks != nullptr && chunks->is_list() && config != nullptr &&
         config->find("data_format") != nullptr;
}

// The keys of a dict are JSON in the JSON; other nodes count their children.
Status child_names(const Json& node, std::vector<std::string>& out) {
  const size_t children = node.find("children_spec")->items().size();
  const std::string_view type = text_of(node, "type");
  if (type.ends_with("dict") || type.ends_with("Dict")) {
    HEADRACE_ASSIGN(const Json keys, Json::parse(text_of(node, "context")));
    for (const Json& key : keys.items()) out.push_back(key.text());
    if (out.size() != children)
      return corrupt(fmt::format("data_spec has {} keys for {} values", out.size(), children));
    return {};
  }
  for (size_t i = 0; i < children; ++i) out.push_back(fmt::format("{}", i));
  return {};
}

// Json::parse() bounds how deep this goes.
Status add_leaves(const Json& node, const std::string& prefix, std::vector<std::string>& out) {
  const Json* children = node.find("children_spec");
  const Json* type = node.find("type");
  if (children == nullptr || !children->is_list() || type == nullptr)
    return corrupt("data_spec has a node without type or children");
  if (type->is_null()) {
    out.push_back(prefix.empty() ? "data" : prefix);
    return {};
  }
  std::vector<std::string> names;
  HEADRACE_TRY(child_names(node, names));
  for (size_t i = 0; i < names.size(); ++i)
    HEADRACE_TRY(
        add_leaves(children->items()[i], prefix.empty() ? names[i] : prefix + '.' + names[i], out));
  return {};
}

// Numbers of types as LitData counts them; nothing where a field cannot have the type.
std::optional<DType> element_type(bool torch, std::string_view number) {
  unsigned n = 0;
  const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), n);
  if (error != std::errc() || stop != number.data() + number.size()) return std::nullopt;
  using enum DType;
  constexpr DType kNone = kBF16;
  constexpr DType kTorch[] = {kF32, kF32, kF64, kF64, kNone, kNone, kNone, kNone, kF16, kF16, kNone,
                              kU8,  kI8,  kI16, kI16, kI32,  kI32,  kI64,  kI64,  kU8,  kU16};
  constexpr DType kNumpy[] = {kI8,  kI16, kI32, kI64, kU8,   kU16,  kU32,
                              kU64, kF16, kF32, kF64, kNone, kNone, kU8};
  const std::span<const DType> types = torch ? std::span(kTorch) : std::span<const DType>(kNumpy);
  if (n >= types.size() || types[n] == kNone) return std::nullopt;
  return types[n];
}

StoredColumn number_leaf(const std::string& name, DType dtype) {
  return {.field = {.name = name,
                    .kind = dtype == DType::kF64 ? Kind::kFloat : Kind::kInt,
                    .storage = Storage::kInline,
                    .dtype = dtype},
          .reading = Reading::kNumber,
          .dtype = dtype};
}

StoredColumn converted_leaf(const std::string& name, uint32_t encoding) {
  return {.field = {.name = name, .kind = Kind::kNpy},
          .reading = Reading::kConvert,
          .encoding = encoding};
}

// A leaf of bytes that is called "count" holds no decimal number.
Kind kind_of_bytes(std::string_view name) {
  const Kind kind = kind_of_extension(name.substr(name.rfind('.') + 1));
  return kind == Kind::kInt ? Kind::kBytes : kind;
}

Status take_packing(const Json& config, LitIndex& out) {
  const std::string_view compression = text_of(config, "compression");
  const std::string_view level = text_of(config, "compression_level");
  if (const Json* encryption = config.find("encryption");
      encryption != nullptr && !encryption->is_null())
    return unsupported("the chunks are encrypted: they are not read");
  if (!text_of(config, "ipc_compression").empty())
    return unsupported("the chunks are Arrow files of nested rows: they are not read");
  if (compression.empty()) return {};
  if (compression != "zstd" && !compression.starts_with("zstd:"))
    return unsupported(fmt::format("the chunks are compressed with {}; zstd is read", compression));
  if (level.empty() || level == "chunk")
    out.packing = LitPacking::kChunk;
  else if (level == "batch")
    out.packing = LitPacking::kBatch;
  else if (level == "sample")
    out.packing = LitPacking::kItem;
  else
    return unsupported(fmt::format("zstd by '{}'; chunk, batch and sample are read", level));
  return {};
}

Status take_leaves(const Json& config, LitIndex& out) {
  const std::string_view loader = text_of(config, "item_loader");
  if (loader != "PyTreeLoader" && loader != "TokensLoader" && !loader.empty())
    return unsupported(
        fmt::format("item_loader {}; PyTreeLoader and TokensLoader are read", loader));
  HEADRACE_ASSIGN(const std::vector<std::string> names,
                  parse_data_spec(text_of(config, "data_spec")));
  const std::vector<Json>& formats = config.find("data_format")->items();
  if (formats.size() != names.size() || names.size() >= kMaxFields || names.empty())
    return corrupt(
        fmt::format("data_spec has {} leaves, data_format {}", names.size(), formats.size()));
  std::set<std::string_view> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!seen.insert(names[i]).second)
      return unsupported(fmt::format("two leaves would be the field '{}'", names[i]));
    HEADRACE_ASSIGN(StoredColumn column, read_lit_leaf(names[i], formats[i].text()));
    out.columns.push_back(std::move(column));
  }
  out.is_tokens = loader == "TokensLoader";
  if (!out.is_tokens) return {};
  if (out.columns.size() != 1 || !out.columns[0].field.dtype ||
      out.columns[0].field.kind != Kind::kArray)
    return unsupported("a TokensLoader whose items are no tensor of one axis");
  out.columns[0].field.kind = Kind::kTokens;
  out.columns[0].field.shape.clear();
  return {};
}

Result<LitIndex> parse_lit_index(const Json& json) {
  LitIndex out;
  const Json& config = *json.find("config");
  HEADRACE_TRY(take_packing(config, out));
  HEADRACE_TRY(take_leaves(config, out));
  for (const Json& chunk : json.find("chunks")->items()) {
    const Json* items = chunk.find("chunk_size");
    const Json* bytes = chunk.find("chunk_bytes");
    LitChunk made{.name = std::string(text_of(chunk, "filename"))};
    if (!stays_inside(made.name) || items == nullptr || bytes == nullptr || !items->count() ||
        !bytes->count())
      return corrupt(
          fmt::format("chunk {} has no filename inside the folder, no chunk_size or no "
                      "chunk_bytes",
                      out.chunks.size()));
    made.items = *items->count();
    made.bytes = *bytes->count();
    if (!out.named.emplace(made.name, out.chunks.size()).second)
      return corrupt(fmt::format("chunk '{}' is named twice", made.name));
    out.chunks.push_back(std::move(made));
  }
  if (out.chunks.empty()) return corrupt("no chunk is named");
  return out;
}

}  // namespace

Result<std::vector<std::string>> parse_data_spec(std::string_view text) {
  HEADRACE_ASSIGN(const Json spec, Json::parse(text));
  // [version, tree]
  if (!spec.is_list() || spec.items().size() != 2 || spec.items()[0].count() != 1)
    return unsupported("a data_spec of another version than torch's 1");
  std::vector<std::string> out;
  HEADRACE_TRY(add_leaves(spec.items()[1], "", out));
  return out;
}

Result<StoredColumn> read_lit_leaf(const std::string& name, std::string_view serializer) {
  const std::string_view kind = serializer.substr(0, serializer.find(':'));
  const std::string_view rest = serializer.substr(std::min(kind.size() + 1, serializer.size()));
  const auto place = [&name](Kind k) { return StoredColumn{.field = {.name = name, .kind = k}}; };
  if (kind == "int") return number_leaf(name, DType::kI64);
  if (kind == "float") return number_leaf(name, DType::kF64);
  if (kind == "bool") return number_leaf(name, DType::kU8);
  if (kind == "str" || kind == "text") return place(Kind::kText);
  if (kind == "bytes") return place(kind_of_bytes(name));
  if (kind == "jpeg") return place(Kind::kJpeg);
  if (kind == "image" || kind == "file") return place(kind_of_bytes(rest));
  for (const std::string_view media :
       {"tifffile", "tiff", "video", "audio", "nifti", "mesh", "pdf"})
    if (kind == media) return place(Kind::kBytes);
  if (kind == "jpeg_array")
    return StoredColumn{.field = {.name = name, .kind = Kind::kJpeg},
                        .reading = Reading::kPictures};
  if (kind == "pil") return converted_leaf(name, kRawPicture);
  if (kind == "tensor") return converted_leaf(name, kTorchTensor);
  if (kind == "numpy") return converted_leaf(name, kNumpyArray);
  if (kind == "no_header_tensor" || kind == "no_header_numpy") {
    const std::optional<DType> dtype = element_type(kind == "no_header_tensor", rest);
    if (dtype)
      return StoredColumn{
          .field = {.name = name, .kind = Kind::kArray, .dtype = dtype, .shape = {kVaries}}};
  }
  if (kind == "pickle" || kind == "graph")
    return unsupported(fmt::format(
        "leaf '{}' is stored as {}, which could run any program: it is not read", name, kind));
  return unsupported(
      fmt::format("leaf '{}' has the serializer '{}', which is not read", name, serializer));
}

Result<LitBeside> lit_index_beside(const Store& store, const std::string& chunk) {
  static LastParsed<LitIndex> last;
  const std::string path = index_beside(chunk);
  const Result<FileInfo> file = store.stat(path);
  if (!file.ok())
    return not_found(
        fmt::format("a chunk of LitData is read only beside its {}, which says what "
                    "is in it",
                    kFolderIndex));
  HEADRACE_ASSIGN(const Buffer text, store.read_all(path));
  Result<std::shared_ptr<const LitIndex>> index =
      last.get(text.bytes(), [](std::string_view read) -> Result<LitIndex> {
        HEADRACE_ASSIGN(const Json json, Json::parse(read));
        if (!is_lit_index(json)) return corrupt("no index of LitData");
        return parse_lit_index(json);
      });
  if (!index.ok()) return index.status().in_file(path);
  return LitBeside{index.value(), file.value()};
}

Result<std::vector<std::string>> claim_lit_folder(const Store& store, const std::string& folder,
                                                  std::span<const FileInfo> entries) {
  std::vector<std::string> out;
  std::set<std::string, std::less<>> there;
  for (const FileInfo& entry : entries) there.emplace(base_name(entry.path));
  if (!there.contains(kFolderIndex)) return out;
  const std::string path = join_path(folder, kFolderIndex);
  HEADRACE_ASSIGN(const Buffer text, store.read_all(path));
  const Result<Json> json = Json::parse(as_text(text.bytes()));
  if (!json.ok() || !is_lit_index(json.value())) return out;
  const Result<LitIndex> index = parse_lit_index(json.value());
  if (!index.ok()) return index.status().in_file(path);
  for (const LitChunk& chunk : index.value().chunks) {
    if (!there.contains(chunk.name))
      return not_found(
                 fmt::format("{} names chunk '{}', which is not there", kFolderIndex, chunk.name))
          .in_file(folder);
    out.push_back(join_path(folder, chunk.name));
  }
  return out;
}

}  // namespace headrace

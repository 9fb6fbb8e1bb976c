// SPDX-License-Identifier: Apache-2.0
#include "format/packed_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "format/format.h"
#include "index/names.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr uint64_t kMostHead = 1 << 20;  // of the first line
constexpr size_t kMostAxes = 32;

std::string field_line(const Field& field) {
  std::string line =
      fmt::format(R"({{"name": {}, "kind": "{}")", json_quoted(field.name), kind_name(field.kind));
  if (field.dtype) line += fmt::format(R"(, "dtype": "{}")", dtype_name(*field.dtype));
  if (field.kind == Kind::kArray) {
    line += R"(, "shape": [)";
    for (size_t i = 0; i < field.shape.size(); ++i)
      line += (i > 0 ? ", " : "") +
              (field.shape[i] == kVaries ? std::string("null") : std::to_string(field.shape[i]));
    line += ']';
  }
  return line + '}';
}

// The first line with the list of shards closed: a small JSON of its own.
std::optional<Json> head_of(const Store& store, const std::string& path) {
  const Result<FileInfo> info = store.stat(path);
  Buffer bytes;
  if (!info.ok() || !store.read_at(path, 0, std::min(info.value().bytes, kMostHead), bytes).ok())
    return std::nullopt;
  const std::string_view text = as_text(bytes.bytes());
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  Result<Json> head = Json::parse(std::string(text.substr(0, end)) + "]}");
  return head.ok() ? std::optional(std::move(head).value()) : std::nullopt;
}

bool says(const Json* value, std::string_view text) {
  return value != nullptr && value->is_text() && value->text() == text;
}

// Nothing where it makes no sense.
std::optional<Field> field_of(const Json& row) {
  const Json* name = row.find("name");
  const Json* said = row.find("kind");
  const std::optional<Kind> kind = said == nullptr ? std::nullopt : kind_named(said->text());
  if (name == nullptr || !name->is_text() || !kind) return std::nullopt;
  Field field{.name = name->text(), .kind = *kind};
  if (const Json* dtype = row.find("dtype"); dtype != nullptr && dtype->is_text())
    field.dtype = dtype_named(dtype->text());
  if (const Json* shape = row.find("shape")) {
    if (shape->items().size() > kMostAxes) return std::nullopt;
    for (const Json& extent : shape->items()) {
      const uint64_t count = extent.count().value_or(~uint64_t{0});
      if (!extent.is_null() && count > uint64_t{1} << 40) return std::nullopt;
      field.shape.push_back(extent.is_null() ? kVaries : static_cast<int64_t>(count));
    }
  }
  if (std::count(field.shape.begin(), field.shape.end(), kVaries) > 1) return std::nullopt;
  const bool needs_type = field.kind == Kind::kArray || field.kind == Kind::kTokens;
  return needs_type && !field.dtype ? std::nullopt : std::optional(field);
}

// Whether the shards say less of the field than the pack.
bool is_less(const Field& shards, const Field& pack) {
  if (shards.storage != Storage::kExtent || shards.dtype ||
      lower_case(pack.name) != lower_case(shards.name))
    return false;
  return shards.name != pack.name || shards.kind == Kind::kBytes ||
         (shards.kind == pack.kind && pack.dtype);
}

}  // namespace

std::string packed_fields_text(const Schema& schema) {
  std::string text;
  for (const Field& field : schema) text += (text.empty() ? "" : ", ") + field_line(field);
  return '[' + text + ']';
}

Schema described_by_pack(const Store& store, const std::string& folder, std::string_view format,
                         const Schema& schema) {
  if (std::none_of(schema.begin(), schema.end(),
                   [](const Field& f) { return f.storage == Storage::kExtent && !f.dtype; }))
    return {};
  const std::optional<Json> head = head_of(store, join_path(folder, kPackManifest));
  const Json* fields = head && says(head->find("format"), format) ? head->find("fields") : nullptr;
  if (fields == nullptr) return {};
  Schema out = schema;
  for (const Json& row : fields->items()) {
    const std::optional<Field> packed = field_of(row);
    for (Field& field : out) {
      if (!packed || !is_less(field, *packed)) continue;
      field.name = packed->name;
      field.kind = packed->kind;
      field.dtype = packed->dtype;
      field.shape = packed->shape;
    }
  }
  return out == schema ? Schema{} : out;
}

}  // namespace headrace

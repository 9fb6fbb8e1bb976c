// SPDX-License-Identifier: Apache-2.0
#include "pack/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "transform/params.h"

namespace headrace {
namespace {

Result<uint32_t> find(const Schema& schema, const std::string& name, std::string_view option) {
  std::vector<std::string_view> names;
  std::string known;
  for (uint32_t f = 0; f < schema.size(); ++f) {
    if (schema[f].name == name) return f;
    names.push_back(schema[f].name);
    known.append(known.empty() ? "" : ", ").append(schema[f].name);
  }
  const std::string_view near = nearest_name(name, names);
  return invalid(fmt::format("{}: no field named '{}'; there are: {}{}", option, name, known,
                             near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

// "jpg" becomes "npy" and "seg.png" "seg.npy": in a tar the name says what a value is.
std::string raw_name(const std::string& name) {
  if (!is_picture(kind_of_extension(name))) return name;
  return name.substr(0, name.rfind('.') + 1) + "npy";
}

// Pictures of one kind; or of several, which packing brings together as the field "image".
bool holds_pictures(const Field& field) {
  return is_picture(field.kind) || (field.kind == Kind::kBytes && field.name == "image");
}

Status keep_wanted(const Schema& schema, const PackOptions& options, Selection& out) {
  for (const std::string& name : options.fields) {
    HEADRACE_ASSIGN(const uint32_t f, find(schema, name, "fields"));
    out.push_back({f, schema[f]});
  }
  if (options.fields.empty())
    for (uint32_t f = 0; f < schema.size(); ++f) out.push_back({f, schema[f]});
  for (const std::string& name : options.drop) {
    HEADRACE_ASSIGN(const uint32_t f, find(schema, name, "drop"));
    std::erase_if(out, [f](const PackedField& p) { return p.source == f; });
  }
  if (out.empty()) return invalid("every field is dropped: nothing is left to pack");
  return {};
}

Status mark_recoded(const Schema& schema, const PackOptions& options, Selection& out) {
  std::vector<uint32_t> only;
  for (const std::string& name : options.recode_fields) {
    HEADRACE_ASSIGN(only.emplace_back(), find(schema, name, "recode"));
    if (!holds_pictures(schema[only.back()]))
      return invalid(fmt::format("recode: field '{}' is {}, no picture", name,
                                 field_text(schema[only.back()])));
  }
  if (!only.empty() && !options.recode.any())
    return invalid("recode names fields; give max_side, quality or raw as well");
  bool some = false;
  for (PackedField& p : out) {
    p.recode = options.recode.any() && holds_pictures(p.field) &&
               (only.empty() || std::find(only.begin(), only.end(), p.source) != only.end());
    some = some || p.recode;
    if (!p.recode || !options.recode.raw) continue;
    p.field.name = raw_name(p.field.name);
    p.field.kind = Kind::kNpy;
  }
  if (options.recode.any() && !some)
    return invalid(
        "max_side, quality and raw are for pictures (jpeg, png, webp); the fields packed "
        "have none");
  return {};
}

Status rename(const Schema& schema, const PackOptions& options, Selection& out) {
  for (const auto& [to, from] : options.rename) {
    HEADRACE_ASSIGN(const uint32_t f, find(schema, from, "rename"));
    if (to.empty()) return invalid(fmt::format("rename: '{}' needs a name", from));
    const auto it =
        std::find_if(out.begin(), out.end(), [f](const PackedField& p) { return p.source == f; });
    if (it == out.end()) return invalid(fmt::format("rename: field '{}' is not packed", from));
    it->field.name = to;
  }
  for (size_t i = 0; i < out.size(); ++i)
    for (size_t k = i + 1; k < out.size(); ++k)
      if (out[i].field.name == out[k].field.name)
        return invalid(fmt::format("two fields would be named '{}'", out[i].field.name));
  return {};
}

}  // namespace

Result<Selection> select_fields(const Schema& schema, const PackOptions& options) {
  Selection out;
  HEADRACE_TRY(keep_wanted(schema, options, out));
  HEADRACE_TRY(mark_recoded(schema, options, out));
  HEADRACE_TRY(rename(schema, options, out));
  return out;
}

Schema schema_of(const Selection& selection) {
  Schema schema;
  for (const PackedField& p : selection) schema.push_back(p.field);
  return schema;
}

Status check_holds(const Format& format, const Schema& schema) {
  if (format.can_hold == nullptr) return {};
  const Status refused = format.can_hold(schema);
  if (refused.ok()) return {};
  // Which fields it can be without is known by leaving each out in turn; pictures last, because
  // they are what most data sets are about.
  std::vector<std::string> drops;
  for (const bool pictures : {false, true})
    for (size_t f = 0; f < schema.size(); ++f) {
      Schema without = schema;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(f));
      if (is_picture(schema[f].kind) == pictures && format.can_hold(without).ok())
        drops.push_back("--drop " + schema[f].name);
    }
  if (!drops.empty())
    return Status(refused.code(),
                  fmt::format("{}; pack with {}", refused.message(), fmt::join(drops, " or ")));
  return refused;
}

}  // namespace headrace

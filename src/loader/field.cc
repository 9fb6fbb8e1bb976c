// SPDX-License-Identifier: Apache-2.0
#include "loader/field.h"

#include <fmt/format.h>

#include <atomic>

namespace headrace {
namespace {

std::string_view what_of(const Field& field) {
  switch (field.kind) {
    case Kind::kInt:
    case Kind::kFloat:
      return "scalar";
    case Kind::kText:
    case Kind::kJson:
      return "text";
    default:
      return "bytes";
  }
}

Stored stored_as(const Field& field) {
  if (field.storage != Storage::kInline) return Stored::kBytes;
  if (field.kind == Kind::kInt) return Stored::kInlineInt;
  return field.kind == Kind::kFloat ? Stored::kInlineFloat : Stored::kBytes;
}

Result<Packing> choose_packing(const FieldRequest& request, const TensorSpec& value) {
  if (request.packing) {
    if (*request.packing == Packing::kDense && !value.is_fixed())
      return invalid(fmt::format("field '{}': values of shape {} cannot be dense", request.output,
                                 value.text()));
    return *request.packing;
  }
  if (value.is_fixed() || request.what != "image") return default_packing(value);
  return invalid(fmt::format(
      "field '{}': pictures of different sizes do not fit into one batch ({}); add .resize((h, "
      "w)), "
      ".random_resized_crop(s) or .center_crop(s), or ask for .list(), .padded() or .ragged()",
      request.output, value.text()));
}

}  // namespace

Result<uint32_t> find_field(const Schema& schema, const std::string& name) {
  std::vector<std::string_view> names;
  std::string known;
  for (uint32_t f = 0; f < schema.size(); ++f) {
    if (schema[f].name == name) return f;
    names.push_back(schema[f].name);
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", schema[f].name,
                         kind_name(schema[f].kind));
  }
  const std::string_view near = nearest_name(name, names);
  return invalid(fmt::format("there is no field '{}' in the data; it has {}{}", name, known,
                             near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

std::vector<FieldRequest> fields_as_they_lie(const Schema& schema) {
  std::vector<FieldRequest> out;
  for (const Field& field : schema)
    out.push_back({.output = field.name, .field = field.name, .what = std::string(what_of(field))});
  return out;
}

void share_pictures(std::vector<FieldRequest>& requests) {
  static std::atomic<uint64_t> next{1};
  for (FieldRequest& a : requests) {
    for (FieldRequest& b : requests) {
      if (&a == &b || a.what != "image" || b.what != "image" || a.field != b.field) continue;
      if (a.share == 0) a.share = next++;
      b.share = a.share;
    }
  }
}

Result<FieldWork> make_field(const FieldRequest& request, const Source& source) {
  FieldWork work;
  work.spec.name = request.output;
  work.is_key = request.what == "key";
  FieldSpec spec{.name = request.output,
                 .what = request.what,
                 .options = request.options,
                 .steps = request.steps,
                 .share = request.share};
  if (!request.joint.empty()) {
    spec.draw_group = Key(0).with(request.joint).value();
    spec.joint = request.leads ? Joint::kLeads : Joint::kFollows;
  }
  if (work.is_key) {
    spec.what = "bytes";
  } else {
    const auto found = find_field(source.schema(), request.field);
    if (!found.ok()) return found.status().with(fmt::format("field '{}'", request.output));
    work.field = found.value();
    const Field& field = source.schema()[work.field];
    spec.stored = stored_as(field);
    if (spec.stored != Stored::kBytes && request.what != "scalar")
      return invalid(fmt::format(
          "field '{}': '{}' is a number that the index holds; take it with hr.scalar(\"{}\")",
          request.output, request.field, request.field));
  }
  HEADRACE_ASSIGN(work.decoder, make_decoder(spec));
  if (request.then) {
    HEADRACE_ASSIGN(work.decoder, request.then(std::move(work.decoder)));
  }
  work.spec.value = work.decoder->output();
  HEADRACE_ASSIGN(work.spec.packing, choose_packing(request, work.spec.value));
  return work;
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "loader/field.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "loader/peek.h"
#include "transform/program/array_decoder.h"

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
    case Kind::kNpy:
    case Kind::kArray:
      return "array";
    case Kind::kTokens:
      return "tokens";
    default:
      return "bytes";
  }
}

Stored stored_as(const Field& field) {
  if (field.storage != Storage::kInline) return Stored::kBytes;
  if (field.kind == Kind::kInt) return Stored::kInlineInt;
  return field.kind == Kind::kFloat ? Stored::kInlineFloat : Stored::kBytes;
}

// Whether two images take plain bytes for the same picture.
bool read_alike(const Params& a, const Params& b) {
  for (const char* option : {"shape", "layout"}) {
    const auto in_a = a.values().find(option);
    const auto in_b = b.values().find(option);
    const bool has_a = in_a != a.values().end();
    const bool has_b = in_b != b.values().end();
    if (has_a != has_b || (has_a && in_a->second != in_b->second)) return false;
  }
  return true;
}

bool takes_numbers(const std::string& what) {
  return what == "array" || what == "tokens" || what == "scalar";
}

// What the schema says of the numbers of a field, and what the first sample has to say.
Status describe_numbers(const FieldRequest& request, const Source& source, uint32_t number,
                        FieldSpec& spec) {
  const Field& field = source.schema()[number];
  spec.number_type = field.dtype;
  switch (field.kind) {
    case Kind::kInt:
      spec.digits = Digits::kWhole;
      return {};
    case Kind::kFloat:
      spec.digits = Digits::kReal;
      return {};
    case Kind::kArray:
    case Kind::kTokens:
      if (!field.dtype) return internal("an array without a type");
      spec.array = {false, field.dtype,
                    field.kind == Kind::kTokens && field.shape.empty()
                        ? std::vector<int64_t>{kVaries}
                        : field.shape};
      return {};
    case Kind::kNpy:
      if (!field.dtype) break;
      spec.array = {true, field.dtype, field.shape};  // shapes vary, in a way that no shape says
      spec.one_shape = spec.one_shape && request.packing == Packing::kDense;
      return {};
    case Kind::kJson:
    case Kind::kText:
      // Lists of numbers in JSON are arrays; the bytes of a text are none of another type.
      if (request.what == "scalar") return {};
      if (request.what != "tokens" || field.kind != Kind::kJson) break;
      spec.array = {true, DType::kI64, {kVaries}};  // whatever the first list is, also an empty one
      spec.one_shape = false;
      return {};
    default:
      // Bytes: the user says what they hold, or the first sample shows that it is a .npy file.
      if (request.what == "scalar" || request.options.values().count("dtype") != 0) return {};
  }
  spec.array = {.is_npy = true};
  if (chooses_array(spec)) return {};
  HEADRACE_ASSIGN(spec.array, first_npy(source, number));
  return {};
}

// Several values a sample: lists, or one buffer of them all where they are of one shape.
Result<Packing> choose_packing_of_many(const FieldRequest& request, const TensorSpec& value) {
  const Packing packing = request.packing.value_or(Packing::kList);
  if (packing == Packing::kPadded)
    return invalid(fmt::format("field '{}': many=True gives lists, or .ragged(); not .padded()",
                               request.output));
  if (packing == Packing::kRagged && !value.is_fixed())
    return invalid(
        fmt::format("field '{}': .ragged() of several values a sample needs values of one shape, "
                    "and {} varies; "
                    "resize or reshape them, or leave .ragged() out to get lists",
                    request.output, value.text()));
  return packing == Packing::kDense ? Packing::kList : packing;
}

Result<Packing> choose_packing(const FieldRequest& request, const Decoder& decoder) {
  const TensorSpec& value = decoder.output();
  if (request.many) return choose_packing_of_many(request, value);
  if (request.packing) {
    if (*request.packing == Packing::kDense && !value.is_fixed())
      return invalid(fmt::format("field '{}': values of shape {} cannot be dense", request.output,
                                 value.text()));
    return *request.packing;
  }
  if (value.is_fixed() || request.what != "image" || decoder.deferred() != nullptr)
    return default_packing(value);
  if (request.wrap_decoder && value.shape.size() == 1)
    return default_packing(value);  // a text, a list
  if (request.wrap_decoder)
    return invalid(fmt::format(
        "field '{}': the function gives values of different sizes ({}), which do not fit into one "
        "batch; ask for .list(), .padded() or .ragged()",
        request.output, value.text()));
  return invalid(fmt::format(
      "field '{}': pictures of different sizes do not fit into one batch ({}); add .resize((h, "
      "w)), "
      ".random_resized_crop(s) or .center_crop(s), or ask for .list(), .padded() or .ragged()",
      request.output, value.text()));
}

// The number of the field, and how its values are stored.
Status describe(const FieldRequest& request, const Source& source, uint32_t& number,
                FieldSpec& spec) {
  HEADRACE_ASSIGN(number, find_field(source.schema(), request.field));
  const Field& field = source.schema()[number];
  spec.stored = stored_as(field);
  const bool takes_arrays =
      request.what == "image" || request.what == "boxes" || request.what == "points";
  if (takes_arrays && (field.kind == Kind::kArray || field.kind == Kind::kTokens))
    spec.array = {false, field.dtype, field.shape};
  if (takes_numbers(request.what)) HEADRACE_TRY(describe_numbers(request, source, number, spec));
  if (spec.stored != Stored::kBytes && request.what != "scalar" && request.what != "array")
    return invalid(
        fmt::format("'{}' is a number that the index holds; take it with hr.scalar(\"{}\")",
                    request.field, request.field));
  return {};
}

// Of the values there are, and in place of those that are not.
Status make_decoders(const FieldRequest& request, const FieldSpec& spec, FieldWork& work) {
  HEADRACE_ASSIGN(const DecoderPointer inner, make_decoder(spec));
  if (inner->inputs() > 1)
    return unsupported(fmt::format("field '{}': its decoder takes {} inputs, and one is given",
                                   request.output, inner->inputs()));
  if (request.wrap_decoder && inner->deferred() != nullptr)
    return invalid(
        fmt::format("field '{}': with defer=true a picture is decoded after the batch "
                    "is made: no function may follow",
                    request.output));
  work.decoder = inner;
  if (request.wrap_decoder) {
    HEADRACE_ASSIGN(work.decoder, request.wrap_decoder(inner));
  }
  work.spec.value = work.decoder->output();
  HEADRACE_ASSIGN(work.absent, make_absent(request, spec, inner, work.decoder));
  return {};
}

Result<FieldWork> finish_column(const FieldRequest& request, FieldWork work) {
  HEADRACE_ASSIGN(work.spec.packing, choose_packing(request, *work.decoder));
  // Only a list has places that can stay empty.
  if (request.is_none_when_absent && work.spec.packing != Packing::kList) work.absent.reset();
  if (request.pad && work.spec.packing == Packing::kPadded) {
    auto pad = pad_value(*request.pad, work.spec.value.dtype);
    if (!pad.ok()) {
      const std::string why(pad.status().message());
      return invalid(fmt::format("field '{}': {}; give another value, or a cast before .padded()",
                                 request.output, why));
    }
    work.spec.pad = pad.value();
    work.spec.pad_multiple = request.pad_multiple;
    work.spec.pad_left = request.pad_left;
  }
  return work;
}

}  // namespace

Result<uint32_t> find_field(const Schema& schema, const std::string& name) {
  // Of thousands of fields mostly the same or the next one is asked for: the search goes on there.
  thread_local size_t last = 0;
  for (size_t k = 0; k < schema.size(); ++k)
    if (const size_t f = (last + k) % schema.size(); schema[f].name == name) {
      last = f;
      return static_cast<uint32_t>(f);
    }
  std::vector<std::string_view> names;
  std::string known;
  for (const Field& field : schema) {
    names.push_back(field.name);
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", field.name, kind_name(field.kind));
  }
  const std::string_view near = nearest_name(name, names);
  return invalid(fmt::format("there is no field '{}' in the data; it has {}{}", name, known,
                             near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

std::vector<FieldRequest> fields_as_they_lie(const Schema& schema) {
  std::vector<FieldRequest> out;
  for (const Field& field : schema) {
    FieldRequest& request = out.emplace_back();
    request.output = request.field = field.name;
    request.what = what_of(field);
    if (field.kind == Kind::kNpy) request.packing = Packing::kList;  // each as it is
    request.many = field.many;
    request.is_none_when_absent = true;
  }
  return out;
}

void share_pictures(std::vector<FieldRequest>& requests) {
  static std::atomic<uint64_t> next{1};
  std::vector<FieldRequest*> pictures;
  for (FieldRequest& request : requests)
    if (request.what == "image") pictures.push_back(&request);
  for (FieldRequest* a : pictures) {
    for (FieldRequest* b : pictures) {
      if (a == b || a->field != b->field || !read_alike(a->options, b->options)) continue;
      if (a->share == 0) a->share = next++;
      b->share = a->share;
    }
  }
}

bool has_field(const FieldRequest& request, const Source& source) {
  if (request.what == "key") return true;
  const Schema& schema = source.schema();
  return std::any_of(schema.begin(), schema.end(),
                     [&](const Field& f) { return f.name == request.field; });
}

Result<FieldWork> make_field(const FieldRequest& request, const Source& source,
                             const TensorSpec* like) {
  FieldWork work;
  work.spec.name = request.output;
  work.spec.many = request.many;
  FieldSpec spec{.name = request.output,
                 .what = request.what,
                 .options = request.options,
                 .steps = request.steps,
                 .share = request.share,
                 .late = request.late};
  if (request.many && (request.what == "key" || !request.joint.empty()))
    return invalid(fmt::format("field '{}': many=True does not go with {}", request.output,
                               request.what == "key" ? "hr.key" : "hr.joint"));
  if (!request.joint.empty()) {
    spec.draw_group = Key(0).with(request.joint).value();
    spec.joint = request.leads ? Joint::kLeads : Joint::kFollows;
  }
  // Where a value may have its own shape: in a list, or on the way into a function.
  const Packing wanted = request.packing.value_or(request.many ? Packing::kList : Packing::kDense);
  spec.one_shape = !request.wrap_decoder &&
                   (wanted == Packing::kDense || (request.many && wanted == Packing::kRagged));
  if (request.what == "key") {
    spec.what = "bytes";
    work.field = kKeyField;
  } else if ((!request.optional && !request.otherwise) || has_field(request, source)) {
    if (Status s = describe(request, source, work.field, spec); !s.ok())
      return s.with(fmt::format("field '{}'", request.output));
  } else {
    work.field = kNoField;
    if (Status s = describe_absent(request, like, spec); !s.ok())
      return s.with(fmt::format("field '{}'", request.output));
  }
  HEADRACE_TRY(make_decoders(request, spec, work));
  return finish_column(request, std::move(work));
}

}  // namespace headrace

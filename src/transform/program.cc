// SPDX-License-Identifier: Apache-2.0
#include "transform/program.h"

#include "codec/json.h"
#include "codec/number.h"
#include "codec/text.h"
#include "transform/boxes.h"
#include "transform/image_decoder.h"

namespace headrace {
namespace {

Result<DType> dtype_named(const std::string& name) {
  std::string known;
  for (int i = 0; i <= static_cast<int>(DType::kF64); ++i) {
    const std::string_view here = dtype_name(static_cast<DType>(i));
    if (here == name) return static_cast<DType>(i);
    known.append(known.empty() ? "" : " ").append(here);
  }
  return invalid("there is no type '" + name + "'; the types are " + known);
}

Result<std::unique_ptr<Decoder>> make_scalar(const FieldSpec& spec) {
  Params options = spec.options;
  const bool floating = spec.stored == Stored::kInlineFloat;
  const std::string name = options.take_text("dtype", floating ? "f64" : "i64");
  HEADRACE_TRY(options.done());
  HEADRACE_ASSIGN(const DType dtype, dtype_named(name));
  const NumberForm form = spec.stored == Stored::kBytes ? NumberForm::kText
                          : floating                    ? NumberForm::kFloat64
                                                        : NumberForm::kInt64;
  return make_number_decoder(form, dtype);
}

Result<std::unique_ptr<Decoder>> make_any(const FieldSpec& spec) {
  if (spec.what == "image") return make_image_decoder(spec);
  if (!spec.steps.empty())
    return invalid("step 1 " + spec.steps[0].name + ": steps follow an image, not " + spec.what);
  if (spec.what == "scalar") return make_scalar(spec);
  if (spec.what == "boxes") return make_boxes_decoder(spec);
  if (spec.what == "points") return make_points_decoder(spec);
  HEADRACE_TRY(spec.options.done());
  if (spec.what == "text") return make_text_decoder();
  if (spec.what == "bytes") return make_bytes_decoder();
  if (spec.what == "json") return make_json_decoder();
  return invalid("nothing decodes '" + spec.what +
                 "'; there are image, boxes, points, scalar, text, bytes, json");
}

}  // namespace

Result<std::unique_ptr<Decoder>> make_decoder(const FieldSpec& spec) {
  auto decoder = make_any(spec);
  if (decoder.ok()) return decoder;
  const Status status = decoder.status();
  // A step's error begins with the step; both belong to one place.
  const bool in_step = status.message().starts_with("step ");
  return Status(status.code(),
                "field '" + spec.name + (in_step ? "', " : "': ") + std::string(status.message()));
}

}  // namespace headrace

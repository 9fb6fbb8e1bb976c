// SPDX-License-Identifier: Apache-2.0
#include "transform/program/program.h"

#include "codec/json.h"
#include "codec/text.h"
#include "transform/program/array_decoder.h"
#include "transform/program/boxes.h"
#include "transform/program/image_decoder.h"

namespace headrace {
namespace {

Result<std::unique_ptr<Decoder>> make_any(const FieldSpec& spec) {
  if (spec.what == "image") return make_image_decoder(spec);
  if (spec.what == "array" || spec.what == "tokens" || spec.what == "scalar")
    return make_numbers_decoder(spec);
  if (!spec.steps.empty())
    return invalid("step 1 " + spec.steps[0].name + ": steps follow an image or an array, not " +
                   spec.what);
  if (spec.what == "boxes") return make_boxes_decoder(spec);
  if (spec.what == "points") return make_points_decoder(spec);
  HEADRACE_TRY(spec.options.done());
  if (spec.what == "text") return make_text_decoder();
  if (spec.what == "bytes") return make_bytes_decoder();
  if (spec.what == "json") return make_json_decoder();
  return invalid("nothing decodes '" + spec.what +
                 "'; there are image, boxes, points, scalar, array, tokens, text, bytes, json");
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

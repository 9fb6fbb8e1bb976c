// SPDX-License-Identifier: Apache-2.0
//
// cast: the element type of the result.  It converts, it does not scale: without normalize
// a float picture holds 0 to 255.
#include "transform/transform.h"

namespace headrace {
namespace {

Result<DType> dtype_from(const std::string& name) {
  for (const DType d : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32})
    if (dtype_name(d) == name) return d;
  return invalid("a picture cannot be '" + name + "'; there are u8, f16, bf16, f32");
}

Status apply(DType dtype, PixelOutput& store) {
  if (store.normalized && dtype == DType::kU8)
    return invalid("a normalized picture cannot be u8; there are f16, bf16, f32");
  store.dtype = dtype;
  store.cast = true;
  return {};
}

Result<Transform> make(Params params) {
  const std::string name = params.need_text("dtype");
  HEADRACE_TRY(params.done());
  HEADRACE_ASSIGN(const DType dtype, dtype_from(name));
  return Transform(StoreStep([dtype](PixelOutput& store, int) { return apply(dtype, store); }));
}

}  // namespace

extern constinit const TransformEntry cast_transform{
    "cast",
    R"(``"u8"``, ``"f16"``, ``"bf16"`` or ``"f32"``; without ``normalize`` values stay 0 to 255.)",
    make};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// layout: "NCHW", a plane per channel (the default), or "NHWC", a pixel after the other.
#include "transform/transform.h"

namespace headrace {
namespace {

Result<Transform> make(Params params) {
  const std::string name = params.need_text("order");
  HEADRACE_TRY(params.done());
  if (name != "NCHW" && name != "NHWC")
    return invalid("no layout '" + name + "'; there are NCHW, NHWC");
  const Layout layout = name == "NCHW" ? Layout::kNCHW : Layout::kNHWC;
  return Transform(StoreStep([layout](PixelOutput& store, int) {
    store.layout = layout;
    return Status();
  }));
}

}  // namespace

extern constinit const TransformEntry layout_transform{"layout", R"(``"NCHW"`` or ``"NHWC"``.)",
                                                       make};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// center_crop: the middle of the picture.  Offsets are rounded as torchvision rounds them, ties
// to even; where the picture is smaller it is padded with zeros, the odd one right and below.
#include <cmath>

#include "transform/transform.h"

namespace headrace {
namespace {

int offset(int have, int want) {
  if (want > have) return -((want - have) / 2);
  return static_cast<int>(std::nearbyint((have - want) / 2.0));
}

class CenterCrop final : public Geometric {
 public:
  explicit CenterCrop(Size size) : size_(size) {}
  Size infer(Size) const override { return size_; }
  View view(Size in, Rng) const override {
    return crop_view(in, {offset(in.width, size_.width), offset(in.height, size_.height),
                          size_.width, size_.height});
  }

 private:
  const Size size_;
};

Result<Transform> make(Params params) {
  const auto numbers = params.need_integers("size");
  HEADRACE_TRY(params.done());
  HEADRACE_ASSIGN(const Size size, size_from(numbers));
  return Transform(std::make_unique<CenterCrop>(size));
}

}  // namespace

extern constinit const TransformEntry center_crop_transform{
    "center_crop",
    R"(The middle of the picture; filled up with zeros where the picture is smaller.)", make};

}  // namespace headrace

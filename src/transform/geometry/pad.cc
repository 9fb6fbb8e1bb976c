// SPDX-License-Identifier: Apache-2.0
//
// pad: wider and higher by `padding`: one number, (left and right, top and bottom), or (left, top,
// right, bottom).
#include "codec/tensor.h"
#include "transform/geometry/padding.h"
#include "transform/transform.h"

namespace headrace {
namespace {

class Pad final : public Geometric {
 public:
  Pad(const Sides& sides, const Filling& filling) : sides_(sides), filling_(filling) {}
  Size infer(Size in) const override {
    const int unknown = static_cast<int>(kVaries);
    return {in.width == unknown ? unknown : sides_.around(in).width,
            in.height == unknown ? unknown : sides_.around(in).height};
  }
  View view(Size in, Rng) const override {
    const Size out = sides_.around(in);
    View v = crop_view(in, {-sides_.left, -sides_.top, out.width, out.height});
    v.padding = filling_.padding;
    return v;
  }
  Status check_channels(int channels) const override { return filling_.check_channels(channels); }

 private:
  const Sides sides_;
  const Filling filling_;
};

Result<Transform> make(Params params) {
  const auto numbers = params.need_integers("padding");
  const Filling::Given given(params);
  HEADRACE_TRY(params.done());
  HEADRACE_ASSIGN(const Sides sides, sides_from(numbers));
  HEADRACE_ASSIGN(const Filling filling, given.checked());
  return Transform(std::make_unique<Pad>(sides, filling));
}

}  // namespace

extern constinit const TransformEntry pad_transform{
    "pad",
    R"(Wider and higher. ``padding``: one number for all sides, (left and right, top and bottom),
or (left, top, right, bottom). ``fill``: a level, or one for each channel. ``padding_mode``:
"constant", "edge", "reflect" or "symmetric".)",
    make};

}  // namespace headrace

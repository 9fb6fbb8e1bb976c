// SPDX-License-Identifier: Apache-2.0
//
// random_rotation: turned by an angle uniform in `degrees`, counter-clockwise, about `center` (x,
// y) or the middle; the size stays.
#include "transform/geometry/motions.h"
#include "transform/transform.h"

namespace headrace {
namespace {

class RandomRotation final : public PixelStep {
 public:
  RandomRotation(Range degrees, const Motions& how) : degrees_(degrees), how_(how) {}
  Status apply(const Pixels& pixels, Rng rng) const override {
    const Motion motion = draw(pixels.size, rng);
    if (motion.angle != 0) move_pixels(pixels, motion, how_.sampling);
    return {};
  }
  std::optional<Affine> matrix(Size size, Rng rng) const override {
    return matrix_of(draw(size, rng), size);
  }
  bool moves() const override { return true; }
  Status check_channels(int channels) const override { return how_.check_channels(channels); }

 private:
  Motion draw(Size size, Rng& rng) const { return turned(degrees_.draw(rng), how_.around(size)); }

  const Range degrees_;
  const Motions how_;
};

Result<Transform> make(Params params) {
  const auto degrees = params.need_numbers("degrees");
  const Motions::Given given(params);
  HEADRACE_TRY(params.done());
  HEADRACE_ASSIGN(const Range angles, angles_from(degrees, "degrees"));
  HEADRACE_ASSIGN(const Motions how, given.checked());
  return Transform(std::make_unique<RandomRotation>(angles, how));
}

}  // namespace

extern constinit const TransformEntry random_rotation_transform{
    "random_rotation",
    R"(Turned counter-clockwise by an angle uniform in ``degrees``: (low, high), or v for (-v, v).

About ``center`` (x, y) or the middle; the size stays. ``interpolation``: "nearest" or
"bilinear". Pixels are those of torchvision's v2 functions on u8 tensors.)",
    make};

}  // namespace headrace

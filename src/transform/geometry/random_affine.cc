// SPDX-License-Identifier: Apache-2.0
//
// random_affine: turned, moved, scaled and sheared by amounts drawn anew, clockwise, about `center`
// (x, y) or the middle; the size stays.
#include <cmath>

#include "transform/geometry/motions.h"
#include "transform/transform.h"

namespace headrace {
namespace {

struct Amounts {
  Range degrees;
  double most_x = 0;  // of the width
  double most_y = 0;  // of the height
  Range scale{1, 1};
  Range shear_x;
  Range shear_y;
};

class RandomAffine final : public PixelStep {
 public:
  RandomAffine(const Amounts& amounts, const Motions& how) : amounts_(amounts), how_(how) {}
  Status apply(const Pixels& pixels, Rng rng) const override {
    move_pixels(pixels, draw(pixels.size, rng), how_.sampling);
    return {};
  }
  std::optional<Affine> matrix(Size size, Rng rng) const override {
    return matrix_of(draw(size, rng), size);
  }
  bool moves() const override { return true; }
  Status check_channels(int channels) const override { return how_.check_channels(channels); }

 private:
  Motion draw(Size size, Rng& rng) const {
    const double x = amounts_.most_x * size.width;
    const double y = amounts_.most_y * size.height;
    Motion m = how_.around(size);
    m.angle = amounts_.degrees.draw(rng);
    m.move_x = std::nearbyint(Range{-x, x}.draw(rng));
    m.move_y = std::nearbyint(Range{-y, y}.draw(rng));
    m.scale = amounts_.scale.draw(rng);
    m.shear_x = amounts_.shear_x.draw(rng);
    m.shear_y = amounts_.shear_y.draw(rng);
    return m;
  }

  const Amounts amounts_;
  const Motions how_;
};

Status read_shear(const std::vector<double>& v, Amounts& out) {
  if (v.empty()) return {};
  if (v.size() == 4) {
    HEADRACE_ASSIGN(out.shear_x, range_from({v[0], v[1]}, "shear"));
    HEADRACE_ASSIGN(out.shear_y, range_from({v[2], v[3]}, "shear"));
  } else {
    HEADRACE_ASSIGN(out.shear_x, angles_from(v, "shear"));
  }
  for (const Range& r : {out.shear_x, out.shear_y})
    if (r.low <= -90 || r.high >= 90)
      return invalid("parameter 'shear' must be between -90 and 90 degrees");
  return {};
}

Result<Transform> make(Params params) {
  const auto degrees = params.need_numbers("degrees");
  const auto translate = params.take_numbers("translate", {0, 0});
  const auto scale = params.take_numbers("scale", {1, 1});
  const auto shear = params.take_numbers("shear", {});
  const Motions::Given given(params);
  HEADRACE_TRY(params.done());
  Amounts amounts;
  HEADRACE_ASSIGN(amounts.degrees, angles_from(degrees, "degrees"));
  for (const double t : translate)
    if (translate.size() != 2 || !(t >= 0 && t <= 1))
      return invalid(
          "parameter 'translate' must be two numbers in [0, 1]: of the width, the height");
  if (translate.size() != 2) return invalid("parameter 'translate' must be two numbers in [0, 1]");
  amounts.most_x = translate[0];
  amounts.most_y = translate[1];
  HEADRACE_ASSIGN(amounts.scale, range_from(scale, "scale", {1e-3, 1e3}));
  HEADRACE_TRY(read_shear(shear, amounts));
  HEADRACE_ASSIGN(const Motions how, given.checked());
  return Transform(std::make_unique<RandomAffine>(amounts, how));
}

}  // namespace

extern constinit const TransformEntry random_affine_transform{
    "random_affine",
    R"(Turned, moved, scaled and sheared; the size stays.

``degrees`` as for ``random_rotation``, but clockwise; ``translate``: at most so much of the
width and of the height; ``scale``: (low, high); ``shear``: v for (-v, v), (low, high) along x,
or (low x, high x, low y, high y), in degrees. What is left out is left alone.)",
    make};

}  // namespace headrace

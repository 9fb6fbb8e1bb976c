// SPDX-License-Identifier: Apache-2.0
//
// gaussian_blur: with probability `p`, a Gaussian kernel of `kernel_size` pixels whose deviation is
// uniform in `sigma`.
#include "transform/colour/neighbours.h"
#include "transform/transform.h"

namespace headrace {
namespace {

class GaussianBlur final : public PixelStep {
 public:
  GaussianBlur(Size extents, Range sigma, double p) : extents_(extents), sigma_(sigma), p_(p) {}
  Status apply(const Pixels& pixels, Rng rng) const override {
    if (rng.uniform() < p_) gaussian_blur(pixels, extents_, sigma_.draw(rng));
    return {};
  }

 private:
  const Size extents_;
  const Range sigma_;
  const double p_;
};

// torchvision's order: (height, width), but the first number is the extent across.
Result<Size> extents_from(const std::vector<int>& v) {
  const bool good = v.size() == 1 || v.size() == 2;
  for (const int extent : v)
    if (!good || extent < 1 || extent % 2 == 0 || extent > 65535)
      return invalid("parameter 'kernel_size' must be odd and from 1 on, or two such numbers");
  if (!good) return invalid("parameter 'kernel_size' must be one number or two");
  return Size{v.front(), v.back()};
}

Result<Transform> make(Params params) {
  const auto kernel_size = params.need_integers("kernel_size");
  auto sigmas = params.take_numbers("sigma", {0.1, 2.0});
  const double p = params.take_number("p", 1);
  HEADRACE_TRY(params.done());
  HEADRACE_TRY(check_probability(p));
  HEADRACE_ASSIGN(const Size extents, extents_from(kernel_size));
  if (sigmas.size() == 1) sigmas.push_back(sigmas[0]);
  HEADRACE_ASSIGN(const Range sigma, range_from(sigmas, "sigma", {.least = 1e-3, .most = 1e4}));
  return Transform(std::make_unique<GaussianBlur>(extents, sigma, p));
}

}  // namespace

extern constinit const TransformEntry gaussian_blur_transform{
    "gaussian_blur",
    R"(A Gaussian blur of ``kernel_size`` pixels (odd; one number, or across and down), its
deviation uniform in ``sigma``. ``p``: the probability that it happens.)",
    make};

}  // namespace headrace

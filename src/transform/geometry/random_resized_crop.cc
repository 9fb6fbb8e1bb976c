// SPDX-License-Identifier: Apache-2.0
//
// random_resized_crop: a part of random area and shape, resampled to a fixed size.
// Drawn as torchvision's RandomResizedCrop.get_params draws: ten tries of an area uniform in
// `scale` and an aspect ratio log-uniform in `ratio`, then the largest centred part that fits.
#include <algorithm>
#include <cmath>

#include "transform/transform.h"

namespace headrace {
namespace {

// To the nearest, ties to even, as Python's round().
int rounded(double v) {
  return static_cast<int>(std::nearbyint(v));
}

Box centred(Size in, Range ratio) {
  const double shape = static_cast<double>(in.width) / in.height;
  int width = in.width;
  int height = in.height;
  if (shape < ratio.low)
    height = rounded(width / ratio.low);
  else if (shape > ratio.high)
    width = rounded(height * ratio.high);
  // At least one pixel of at most all: extreme shapes round to nothing.
  width = std::clamp(width, 1, in.width);
  height = std::clamp(height, 1, in.height);
  return {(in.width - width) / 2, (in.height - height) / 2, width, height};
}

Box draw(Size in, Range scale, Range ratio, Rng& rng) {
  const double area = static_cast<double>(in.width) * in.height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * rng.uniform(scale.low, scale.high);
    const double shape = std::exp(rng.uniform(std::log(ratio.low), std::log(ratio.high)));
    const int width = rounded(std::sqrt(target * shape));
    const int height = rounded(std::sqrt(target / shape));
    if (width <= 0 || width > in.width || height <= 0 || height > in.height) continue;
    const auto y = static_cast<int>(rng.below(static_cast<uint64_t>(in.height - height) + 1));
    const auto x = static_cast<int>(rng.below(static_cast<uint64_t>(in.width - width) + 1));
    return {x, y, width, height};
  }
  return centred(in, ratio);
}

class RandomResizedCrop final : public Geometric {
 public:
  RandomResizedCrop(Size size, Range scale, Range ratio, Filter filter)
      : size_(size), scale_(scale), ratio_(ratio), filter_(filter) {}

  Size infer(Size) const override { return size_; }
  View view(Size in, Rng rng) const override {
    View v = resize_view(in, size_, filter_);
    v.box = draw(in, scale_, ratio_, rng);
    return v;
  }

 private:
  const Size size_;
  const Range scale_;
  const Range ratio_;
  const Filter filter_;
};

Result<Range> positive_range(const std::vector<double>& v, std::string_view name, double most) {
  if (v.size() == 2 && v[0] > 0 && v[0] <= v[1] && v[1] <= most) return Range{v[0], v[1]};
  return invalid("parameter '" + std::string(name) + "' must be (low, high) with 0 < low <= high" +
                 (most == 1 ? " <= 1" : ""));
}

Result<Transform> make(Params params) {
  const auto numbers = params.need_integers("size");
  const auto scale = params.take_numbers("scale", {0.08, 1.0});
  const auto ratio = params.take_numbers("ratio", {3.0 / 4.0, 4.0 / 3.0});
  const std::string filter_name = params.take_text("filter", "bilinear");
  HEADRACE_TRY(params.done());
  HEADRACE_ASSIGN(const Size size, size_from(numbers));
  HEADRACE_ASSIGN(const Range scales, positive_range(scale, "scale", 1));
  HEADRACE_ASSIGN(const Range ratios, positive_range(ratio, "ratio", 1e6));
  HEADRACE_ASSIGN(const Filter filter, filter_named(filter_name));
  return Transform(std::make_unique<RandomResizedCrop>(size, scales, ratios, filter));
}

}  // namespace

extern constinit const TransformEntry random_resized_crop_transform{
    "random_resized_crop",
    R"(A random part of the picture, resized to ``size``; drawn as torchvision draws it.

``filter``: "nearest", "bilinear", "bicubic" or "lanczos", antialiased as Pillow's.)",
    make};

}  // namespace headrace

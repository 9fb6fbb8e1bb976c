// SPDX-License-Identifier: Apache-2.0
//
// resize: the whole picture at another size.  One number is the shorter side; the longer
// follows as torchvision rounds it, int(size * long / short).
#include <cmath>

#include "codec/tensor.h"
#include "transform/transform.h"

namespace headrace {
namespace {

constexpr int kUnknown = static_cast<int>(kVaries);

int longer_side(int size, int longer, int shorter) {
  return static_cast<int>(static_cast<double>(static_cast<int64_t>(size) * longer) / shorter);
}

class Resize final : public Geometric {
 public:
  Resize(Size size, bool shorter_side, Filter filter)
      : size_(size), shorter_side_(shorter_side), filter_(filter) {}

  Size infer(Size in) const override {
    if (!shorter_side_) return size_;
    if (in.width == kUnknown || in.height == kUnknown) return {kUnknown, kUnknown};
    return scaled(in);
  }
  View view(Size in, Rng) const override {
    return resize_view(in, shorter_side_ ? scaled(in) : size_, filter_);
  }

 private:
  Size scaled(Size in) const {
    const int s = size_.width;
    if (in.width <= in.height) return {s, longer_side(s, in.height, in.width)};
    return {longer_side(s, in.width, in.height), s};
  }

  const Size size_;
  const bool shorter_side_;
  const Filter filter_;
};

Result<Transform> make(Params params) {
  const auto numbers = params.need_integers("size");
  const std::string filter_name = params.take_text("filter", "bilinear");
  HEADRACE_TRY(params.done());
  HEADRACE_ASSIGN(const Size size, size_from(numbers));
  HEADRACE_ASSIGN(const Filter filter, filter_named(filter_name));
  return Transform(std::make_unique<Resize>(size, numbers.size() == 1, filter));
}

}  // namespace

extern constinit const TransformEntry resize_transform{
    "resize",
    R"(``s``: the shorter side becomes s, as in torchvision. ``(h, w)``: exactly that.

``filter``: "nearest", "bilinear", "bicubic" or "lanczos", antialiased as Pillow's.)",
    make};

}  // namespace headrace

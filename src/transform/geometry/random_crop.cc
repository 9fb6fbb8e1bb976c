// SPDX-License-Identifier: Apache-2.0
//
// random_crop: a part of fixed size at a random place, of the picture with `padding` around it.
// `pad_if_needed` adds what is missing for the size, on both sides.
#include <fmt/format.h>

#include "transform/geometry/padding.h"
#include "transform/transform.h"

namespace headrace {
namespace {

class RandomCrop final : public Geometric {
 public:
  RandomCrop(Size size, const Sides& sides, bool pad_if_needed, const Filling& filling)
      : size_(size), sides_(sides), pad_if_needed_(pad_if_needed), filling_(filling) {}

  Size infer(Size) const override { return size_; }
  // As torchvision: a picture that is too small is padded by all that is missing on either side.
  View view(Size in, Rng rng) const override {
    const Size padded = sides_.around(in);
    const int low = missing(padded.height, size_.height);
    const int narrow = missing(padded.width, size_.width);
    const int y = draw(padded.height + 2 * low - size_.height, rng) - low - sides_.top;
    const int x = draw(padded.width + 2 * narrow - size_.width, rng) - narrow - sides_.left;
    View v = crop_view(in, {x, y, size_.width, size_.height});
    v.padding = filling_.padding;
    return v;
  }
  Status check_channels(int channels) const override { return filling_.check_channels(channels); }
  Status check_size(Size in) const override {
    const Size padded = sides_.around(in);
    if (pad_if_needed_ || (padded.width >= size_.width && padded.height >= size_.height)) return {};
    return corrupt(fmt::format(
        "the picture is {} x {}{}, smaller than the crop of {} x {}; pad_if_needed=True pads it",
        padded.width, padded.height, sides_ == Sides{} ? "" : " with its padding", size_.width,
        size_.height));
  }

 private:
  static int missing(int have, int want) { return have < want ? want - have : 0; }
  static int draw(int room, Rng& rng) {
    return static_cast<int>(rng.below(static_cast<uint64_t>(room) + 1));
  }

  const Size size_;
  const Sides sides_;
  const bool pad_if_needed_;
  const Filling filling_;
};

Result<Transform> make(Params params) {
  const auto numbers = params.need_integers("size");
  const auto padding = params.take_integers("padding", {0});
  const bool pad_if_needed = params.take_flag("pad_if_needed", false);
  const Filling::Given given(params);
  HEADRACE_TRY(params.done());
  HEADRACE_ASSIGN(const Size size, size_from(numbers));
  HEADRACE_ASSIGN(const Sides sides, sides_from(padding));
  HEADRACE_ASSIGN(const Filling filling, given.checked());
  return Transform(std::make_unique<RandomCrop>(size, sides, pad_if_needed, filling));
}

}  // namespace

extern constinit const TransformEntry random_crop_transform{
    "random_crop",
    R"(A part of ``size`` at a random place, of the picture with ``padding`` around it.

``padding``, ``fill`` and ``padding_mode``: as for ``pad``. A picture that is smaller with
its padding is an error unless ``pad_if_needed``.)",
    make};

}  // namespace headrace

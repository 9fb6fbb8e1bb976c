// SPDX-License-Identifier: Apache-2.0
//
// normalize: (v / 255 - mean) / std per channel, as one multiply and add.  The result is f32
// unless cast says otherwise.
#include <cmath>

#include "transform/transform.h"

namespace headrace {
namespace {

// One number serves all channels.
Result<std::vector<double>> per_channel(std::vector<double> v, std::string_view name,
                                        int channels) {
  const auto n = static_cast<size_t>(channels);
  if (v.size() == 1) v.assign(n, v[0]);
  if (v.size() == n) return v;
  return invalid("parameter '" + std::string(name) + "' has " + std::to_string(v.size()) +
                 " numbers for " + std::to_string(n) + (n == 1 ? " channel" : " channels"));
}

Status apply(const std::vector<double>& means, const std::vector<double>& stds, PixelOutput& store,
             int channels) {
  if (store.normalized) return invalid("the picture is normalized already");
  HEADRACE_ASSIGN(const auto mean, per_channel(means, "mean", channels));
  HEADRACE_ASSIGN(const auto std_dev, per_channel(stds, "std", channels));
  for (size_t c = 0; c < mean.size(); ++c) {
    store.scale[c] = static_cast<float>(1 / (255 * std_dev[c]));
    store.bias[c] = static_cast<float>(-mean[c] / std_dev[c]);
  }
  if (store.cast && store.dtype == DType::kU8)
    return invalid("a u8 cannot be normalized: cast to f16, bf16 or f32");
  if (!store.cast) store.dtype = DType::kF32;
  store.normalized = true;
  return {};
}

Result<Transform> make(Params params) {
  auto mean = params.need_numbers("mean");
  auto std_dev = params.need_numbers("std");
  HEADRACE_TRY(params.done());
  for (const double m : mean)
    if (!std::isfinite(m)) return invalid("parameter 'mean' must be finite");
  for (const double s : std_dev)
    if (!(s > 0) || !std::isfinite(s)) return invalid("parameter 'std' must be above 0");
  return Transform(StoreStep(
      [mean = std::move(mean), std_dev = std::move(std_dev)](PixelOutput& store, int channels) {
        return apply(mean, std_dev, store, channels);
      }));
}

}  // namespace

extern constinit const TransformEntry normalize_transform{
    "normalize",
    R"(``(value/255 - mean) / std`` for each channel, as f32 unless ``cast`` says otherwise.)",
    make};

}  // namespace headrace

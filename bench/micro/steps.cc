// SPDX-License-Identifier: Apache-2.0
//
// steps: milliseconds of each pixel step on a 224 x 224 colour picture, one thread; the first line
// is what copying the picture takes.
//
//   build/release/steps [name]
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "transform/transform.h"

namespace headrace {
namespace {

using Numbers = std::vector<double>;
using Clock = std::chrono::steady_clock;

struct Timed {
  const char* name;
  const char* how;
  std::map<std::string, Param> given;
};

const Timed kSteps[] = {
    {"color_jitter",
     "0.4, 0.4, 0.4, 0.1",
     {{"brightness", 0.4}, {"contrast", 0.4}, {"saturation", 0.4}, {"hue", 0.1}}},
    {"color_jitter", "brightness", {{"brightness", Numbers{1.3, 1.3}}}},
    {"color_jitter", "contrast", {{"contrast", Numbers{1.3, 1.3}}}},
    {"color_jitter", "saturation", {{"saturation", Numbers{1.3, 1.3}}}},
    {"color_jitter", "hue", {{"hue", Numbers{0.1, 0.1}}}},
    {"random_grayscale", "", {{"p", 1.0}}},
    {"gaussian_blur", "23, sigma 0.1 to 2", {{"kernel_size", int64_t{23}}}},
    {"gaussian_blur", "23, sigma 2", {{"kernel_size", int64_t{23}}, {"sigma", 2.0}}},
    {"random_adjust_sharpness", "2", {{"sharpness_factor", 2.0}, {"p", 1.0}}},
    {"random_solarize", "128", {{"threshold", 128.0}, {"p", 1.0}}},
    {"random_posterize", "3", {{"bits", int64_t{3}}, {"p", 1.0}}},
    {"random_autocontrast", "", {{"p", 1.0}}},
    {"random_equalize", "", {{"p", 1.0}}},
    {"random_invert", "", {{"p", 1.0}}},
    {"random_erasing", "0", {{"p", 1.0}}},
    {"random_erasing", "random", {{"p", 1.0}, {"value", std::string("random")}}},
    {"random_rotation", "30, nearest", {{"degrees", 30.0}}},
    {"random_rotation",
     "30, bilinear",
     {{"degrees", 30.0}, {"interpolation", std::string("bilinear")}}},
    {"random_affine", "30, shear 10", {{"degrees", 30.0}, {"shear", 10.0}}},
    {"rand_augment", "", {}},
    {"trivial_augment", "", {}},
    {"auto_augment", "", {}},
};

// Colours that wander, as those of photographs do.
std::vector<uint8_t> picture() {
  std::vector<uint8_t> out(224 * 224 * 3);
  Rng rng{Key(3)};
  int colour[] = {100, 120, 140};
  for (size_t i = 0; i < out.size(); ++i) {
    int& v = colour[i % 3];
    v = std::clamp(v + static_cast<int>(rng.below(21)) - 10, 0, 255);
    out[i] = static_cast<uint8_t>(v);
  }
  return out;
}

// The best of twelve rounds of twenty draws.
template <typename Run>
double milliseconds(const std::vector<uint8_t>& source, Run run) {
  std::vector<uint8_t> pixels = source;
  double best = 1e9;
  for (int round = 0; round < 12; ++round) {
    double total = 0;
    for (uint64_t draw = 0; draw < 20; ++draw) {
      std::memcpy(pixels.data(), source.data(), source.size());
      const auto begin = Clock::now();
      run(Pixels{pixels.data(), {224, 224}, 3}, Rng(Key(draw)));
      total += std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    }
    best = std::min(best, total / 20);
  }
  return best;
}

int run(const std::string& only) {
  const auto source = picture();
  const double copy = milliseconds(
      source, [&](const Pixels& p, Rng) { std::memcpy(p.data, source.data(), source.size()); });
  fmt::print("{:<24} {:<20} {:.3f} ms\n", "copy", "", copy);
  for (const Timed& timed : kSteps) {
    if (!only.empty() && only != timed.name) continue;
    const auto made = find_transform(timed.name).value()->make(Params(timed.given));
    const auto& step = *std::get<std::unique_ptr<const PixelStep>>(made.value());
    const double ms =
        milliseconds(source, [&](const Pixels& p, Rng rng) { (void)step.apply(p, rng); });
    fmt::print("{:<24} {:<20} {:.3f} ms\n", timed.name, timed.how, ms);
  }
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::run(argc > 1 ? argv[1] : "");
}

// SPDX-License-Identifier: Apache-2.0
#include "transform/geometry/motion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

namespace headrace {
namespace {

struct Linear {
  double a, b, c, d;  // (a b; c d), of determinant 1
};

// Rotation · shear down · shear across.
Linear linear_of(const Motion& m) {
  constexpr double kDegree = std::numbers::pi / 180;
  const double turn = m.angle * kDegree;
  const double down = m.shear_y * kDegree;
  const double across = std::tan(m.shear_x * kDegree);
  const double a = std::cos(turn - down) / std::cos(down);
  const double c = std::sin(turn - down) / std::cos(down);
  return {a, -(a * across + std::sin(turn)), c, std::cos(turn) - c * across};
}

// Where pixels come from, in f32: columns and rows of the source, along a row of the result.
// The steps and their order are torchvision's (a grid in [-1, 1], then pixels of it), because
// where a position falls between two pixels the last bit decides.
class Positions {
 public:
  Positions(const Motion& m, Size size) : size_(size) {
    const Linear l = linear_of(m);
    const double i[4] = {l.d / m.scale, -l.b / m.scale, -l.c / m.scale, l.a / m.scale};
    const double x = m.center_x + m.move_x;
    const double y = m.center_y + m.move_y;
    set(across_, i[0], i[1], m.center_x - i[0] * x - i[1] * y, size.width);
    set(down_, i[2], i[3], m.center_y - i[2] * x - i[3] * y, size.height);
  }
  // Of pixels [x, x + kRun) of row y.
  static constexpr int kRun = 32;
  struct Run {
    float x[kRun];
    float y[kRun];
  };
  void get(int x, int y, Run& out) const {
    const float first = static_cast<float>(x) - static_cast<float>(size_.width - 1) * 0.5f;
    const float row = static_cast<float>(y) - static_cast<float>(size_.height - 1) * 0.5f;
    fill(across_, first, row, size_.width, out.x);
    fill(down_, first, row, size_.height, out.y);
  }

 private:
  struct Axis {
    float x, y, one;
  };
  static void set(Axis& axis, double x, double y, double one, int extent) {
    const float half = static_cast<float>(0.5 * extent);
    axis = {static_cast<float>(x) / half, static_cast<float>(y) / half,
            static_cast<float>(one) / half};
  }
  // Far outside is as good as just outside, and stays within int.
  static void fill(const Axis& axis, float first, float row, int extent, float* out) {
    const float from_row = row * axis.y;
    const float half = static_cast<float>(extent) / 2;
    const float most = static_cast<float>(extent) + 1;
    for (int i = 0; i < kRun; ++i) {
      const float column = first + static_cast<float>(i);
      const float across = column * axis.x;
      const float grid = (across + from_row) + axis.one;
      // f64 does what a fused multiply and add does.
      auto at = static_cast<float>(static_cast<double>(grid + 1) * half - 0.5);
      at = at < -2 ? -2 : at;
      out[i] = at > most ? most : at;
    }
  }

  Size size_;
  Axis across_{};
  Axis down_{};
};

// To the nearest whole number, ties to even: adding 1.5·2^23 leaves no room for a fraction.
float nearest(float v) {
  constexpr float kNoFraction = 12582912.0f;
  return (v + kNoFraction) - kNoFraction;
}

bool outside(int at, int extent) {
  return static_cast<unsigned>(at) >= static_cast<unsigned>(extent);
}

using Bytes4 = std::array<uint8_t, kMaxChannels>;

void take_nearest(const Pixels& source, const Positions::Run& from, int count, const Bytes4& colour,
                  uint8_t* out) {
  const auto pixel = static_cast<size_t>(source.channels);
  for (int i = 0; i < count; ++i, out += pixel) {
    const int x = static_cast<int>(nearest(from.x[i]));
    const int y = static_cast<int>(nearest(from.y[i]));
    const bool none = outside(x, source.size.width) || outside(y, source.size.height);
    const uint8_t* in = none ? colour.data() : source.row(y) + static_cast<size_t>(x) * pixel;
    for (size_t c = 0; c < pixel; ++c) out[c] = in[c];
  }
}

// The pixels around a position, and how far it is from the first of them.
struct Corners {
  int x, y;  // of the upper left one
  float east, south;
};

Corners corners(float x, float y) {
  // Positions are from -2 on: toward zero is down where nothing is negative.
  const int left = static_cast<int>(x + 2) - 2;
  const int top = static_cast<int>(y + 2) - 2;
  return {left, top, x - static_cast<float>(left), y - static_cast<float>(top)};
}

// Of the four corners; those outside of the picture weigh nothing.
struct Weights {
  float corner[4];
  float covered;  // their sum
};

Weights weights(const Corners& at, Size size) {
  Weights out{{(1 - at.east) * (1 - at.south), at.east * (1 - at.south), (1 - at.east) * at.south,
               at.east * at.south},
              0};
  for (int k = 0; k < 4; ++k) {
    if (outside(at.x + k % 2, size.width) || outside(at.y + k / 2, size.height)) out.corner[k] = 0;
    out.covered += out.corner[k];
  }
  return out;
}

// At the edge, where some corners are outside.
void blend_edge(const Pixels& source, const Corners& near, const std::optional<Colour>& fill,
                uint8_t* out) {
  const Weights w = weights(near, source.size);
  const auto pixel = static_cast<size_t>(source.channels);
  for (size_t c = 0; c < pixel; ++c) {
    float v = 0;
    for (int k = 0; k < 4; ++k) {
      const int x = std::clamp(near.x + k % 2, 0, source.size.width - 1);
      const int y = std::clamp(near.y + k / 2, 0, source.size.height - 1);
      v += static_cast<float>(source.row(y)[static_cast<size_t>(x) * pixel + c]) * w.corner[k];
    }
    if (fill) v = (v - fill->level[c]) * w.covered + fill->level[c];
    out[c] = static_cast<uint8_t>(static_cast<int>(nearest(v)));
  }
}

// Within the picture: whole numbers of 22 bits, which f32 would not have more of.
void blend_inside(const Pixels& source, const Corners& near, uint8_t* out) {
  constexpr int kBits = 22;
  constexpr auto kOne = static_cast<float>(1 << kBits);
  // Rounding may leave a share a hair outside of 0 to 1.
  const float east = std::clamp(near.east, 0.0f, 1.0f);
  const float south = std::clamp(near.south, 0.0f, 1.0f);
  const auto se = static_cast<uint32_t>(east * south * kOne);
  const uint32_t ne = static_cast<uint32_t>(east * kOne) - se;
  const uint32_t sw = static_cast<uint32_t>(south * kOne) - se;
  const uint32_t nw = (1u << kBits) - se - ne - sw;
  const auto pixel = static_cast<size_t>(source.channels);
  const uint8_t* top = source.row(near.y) + static_cast<size_t>(near.x) * pixel;
  const uint8_t* bottom = top + source.stride();
  for (size_t c = 0; c < pixel; ++c) {
    const uint32_t sum =
        top[c] * nw + top[c + pixel] * ne + bottom[c] * sw + bottom[c + pixel] * se;
    out[c] = static_cast<uint8_t>((sum + (1u << (kBits - 1))) >> kBits);
  }
}

void take_bilinear(const Pixels& source, const Positions::Run& from, int count,
                   const std::optional<Colour>& fill, const Bytes4& colour, uint8_t* out) {
  const auto [width, height] = source.size;
  for (int i = 0; i < count; ++i, out += source.channels) {
    const Corners near = corners(from.x[i], from.y[i]);
    if (outside(near.x + 1, width + 1) || outside(near.y + 1, height + 1))
      std::copy_n(colour.data(), source.channels, out);
    else if (outside(near.x, width - 1) || outside(near.y, height - 1))
      blend_edge(source, near, fill, out);
    else
      blend_inside(source, near, out);
  }
}

}  // namespace

Affine matrix_of(const Motion& m, Size size) {
  const Linear l = linear_of(m);
  const double a = l.a * m.scale, b = l.b * m.scale, c = l.c * m.scale, d = l.d * m.scale;
  const double x = size.width * 0.5 + m.center_x;
  const double y = size.height * 0.5 + m.center_y;
  return {a, b, x + m.move_x - a * x - b * y, c, d, y + m.move_y - c * x - d * y};
}

Result<Filter> sampling_named(std::string_view name) {
  if (name == "nearest") return Filter::kNearest;
  if (name == "bilinear") return Filter::kBilinear;
  return invalid("no interpolation '" + std::string(name) + "'; there are nearest, bilinear");
}

void move_pixels(const Pixels& pixels, const Motion& motion, const Sampling& sampling) {
  const Pixels source = copy_for_reading(pixels);
  const Positions positions(motion, pixels.size);
  Colour fill = sampling.fill.value_or(Colour{});
  for (float& level : fill.level) level = nearest(level);
  const Bytes4 colour = fill.bytes();
  Positions::Run run;
  for (int y = 0; y < pixels.size.height; ++y) {
    for (int x = 0; x < pixels.size.width; x += Positions::kRun) {
      positions.get(x, y, run);
      const int count = std::min(Positions::kRun, pixels.size.width - x);
      uint8_t* out = pixels.row(y) + static_cast<size_t>(x) * static_cast<size_t>(pixels.channels);
      if (sampling.filter == Filter::kNearest)
        take_nearest(source, run, count, colour, out);
      else
        take_bilinear(source, run, count, sampling.fill, colour, out);
    }
  }
}

}  // namespace headrace

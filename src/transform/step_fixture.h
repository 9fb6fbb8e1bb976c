// SPDX-License-Identifier: Apache-2.0
//
// For the tests of steps: a step by its name, run on a small picture.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transform/transform.h"

namespace headrace::fixture {

using Given = std::map<std::string, Param>;
using Numbers = std::vector<double>;

inline Result<Transform> make_step(std::string_view name, Given given) {
  return find_transform(name).value()->make(Params(std::move(given)));
}

template <typename Kind>
std::unique_ptr<const Kind> step(std::string_view name, Given given = {}) {
  auto made = make_step(name, std::move(given));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::get<std::unique_ptr<const Kind>>(std::move(made.value()));
}

// What is said when it is refused.
inline std::string refusal(std::string_view name, Given given) {
  return std::string(make_step(name, std::move(given)).status().message());
}

// A picture that owns its pixels.
struct Canvas {
  Canvas(Size of, int count, uint64_t seed = 1) : channels(count), size(of) {
    Rng rng{Key(seed)};
    const auto n = static_cast<size_t>(size.width) * static_cast<size_t>(size.height) *
                   static_cast<size_t>(channels);
    for (size_t i = 0; i < n; ++i) bytes.push_back(static_cast<uint8_t>(rng.below(256)));
  }
  Pixels pixels() { return {bytes.data(), size, channels}; }
  uint8_t at(int x, int y, int c = 0) const {
    return bytes[(static_cast<size_t>(y) * static_cast<size_t>(size.width) +
                  static_cast<size_t>(x)) *
                     static_cast<size_t>(channels) +
                 static_cast<size_t>(c)];
  }

  int channels;
  Size size;
  std::vector<uint8_t> bytes;
};

inline Canvas run(const PixelStep& step, Canvas canvas, uint64_t seed = 1) {
  EXPECT_TRUE(step.apply(canvas.pixels(), Rng(Key(seed))).ok());
  return canvas;
}

// How many of 4,000 draws change the picture.
inline int changes(const PixelStep& step) {
  const Canvas before({6, 5}, 3);
  int n = 0;
  for (uint64_t i = 0; i < 4000; ++i) n += run(step, before, i).bytes != before.bytes;
  return n;
}

// Whether a change of colour leaves alpha alone, treats the rest as if there were none, and
// gives the same for the same draws.
inline void keeps_alpha(const PixelStep& step) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Canvas colour({9, 7}, 3, seed);
    Canvas with_alpha({9, 7}, 4, seed + 100);
    for (size_t i = 0; i < 63; ++i)
      for (size_t c = 0; c < 3; ++c) with_alpha.bytes[4 * i + c] = colour.bytes[3 * i + c];
    const Canvas want = run(step, colour, seed);
    const Canvas got = run(step, with_alpha, seed);
    for (size_t i = 0; i < 63; ++i) {
      for (size_t c = 0; c < 3; ++c) ASSERT_EQ(got.bytes[4 * i + c], want.bytes[3 * i + c]);
      ASSERT_EQ(got.bytes[4 * i + 3], with_alpha.bytes[4 * i + 3]);
    }
  }
}

}  // namespace headrace::fixture

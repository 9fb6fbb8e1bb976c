// SPDX-License-Identifier: Apache-2.0
//
// Changes of colour, in place.  Each gives the pixels of the function of the same name in
// torchvision.transforms.v2.functional on u8 tensors; gray pictures have one colour, alpha stays.
#pragma once

#include <array>
#include <cstdint>

#include "codec/deferred.h"
#include "transform/program/pixels.h"

namespace headrace {

// One colour becomes another, whatever its neighbours are.
using Levels = std::array<uint8_t, 256>;
void map_levels(const Pixels& pixels, const Levels& levels);
void map_levels(const Pixels& pixels, const std::array<Levels, 3>& by_channel);

// Factors from 0 (black, one gray, gray) over 1 (as it was) on.
void adjust_brightness(const Pixels& pixels, double factor);
void adjust_contrast(const Pixels& pixels, double factor);
void adjust_saturation(const Pixels& pixels, double factor);
// -0.5 to 0.5 of the way round the colours.
void adjust_hue(const Pixels& pixels, double turn);
void make_gray(const Pixels& pixels);

// Any of these, or a part of the picture covered.
void apply_change(const Pixels& pixels, const PixelChange& change);
// The turn of a hue, -0.5 to 0.5 of the way round, as kernels count it: sixths, times 2^16.
int32_t hue_turn(double turn);

void posterize(const Pixels& pixels, int bits);
void solarize(const Pixels& pixels, double threshold);
void invert(const Pixels& pixels);
void autocontrast(const Pixels& pixels);
void equalize(const Pixels& pixels);

}  // namespace headrace

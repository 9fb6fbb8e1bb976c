// SPDX-License-Identifier: Apache-2.0
//
// One row of pixels from one meaning to another, as Pillow's convert() does it,
// to the last bit.  Shared by the codecs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

// Rec. 601 luma in 16 bits of fixed point.  May work in place.
void rgb_to_gray(const uint8_t* rgb, uint8_t* gray, int pixels);
// Adobe's inverted CMYK, as JPEG stores it: 255 is no ink.  May work in place.
void inverted_cmyk_to_rgb(const uint8_t* cmyk, uint8_t* rgb, int pixels);
// Opaque.  May work in place: `rgba` may be `rgb`.
void rgb_to_rgba(const uint8_t* rgb, uint8_t* rgba, int pixels);

// Colours times their alpha, as Pillow resizes them ("RGBa").
void premultiply(const uint8_t* rgba, uint8_t* out, size_t pixels);
// And back, of planes that are `plane` bytes apart, in place.
void unpremultiply_planes(uint8_t* rgba, size_t plane, size_t pixels);

}  // namespace headrace

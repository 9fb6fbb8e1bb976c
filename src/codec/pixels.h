// SPDX-License-Identifier: Apache-2.0
//
// One row of pixels from one meaning to another, as Pillow's convert() does it,
// to the last bit.  Shared by the codecs.
#pragma once

#include <cstdint>

namespace headrace {

// Rec. 601 luma in 16 bits of fixed point.  May work in place.
void rgb_to_gray(const uint8_t* rgb, uint8_t* gray, int pixels);
// Adobe's inverted CMYK, as JPEG stores it: 255 is no ink.  May work in place.
void inverted_cmyk_to_rgb(const uint8_t* cmyk, uint8_t* rgb, int pixels);

}  // namespace headrace

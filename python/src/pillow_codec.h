// SPDX-License-Identifier: Apache-2.0
//
// Pictures that no codec of the engine takes (TIFF, BMP, GIF, …), through Pillow, under the
// GIL.  Pillow is imported with the first of them; headrace/other_pictures.py has the Python of it.
#pragma once

#include "codec/image.h"

namespace headrace::py {

extern const ImageCodec pillow_codec;

}  // namespace headrace::py

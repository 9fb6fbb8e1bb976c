// SPDX-License-Identifier: Apache-2.0
//
// The decoder of pictures that ends before the pixels: it draws what the steps draw and leaves
// decoding and resampling to a later stage (codec/deferred.h).
#pragma once

#include <memory>

#include "codec/decoder.h"
#include "codec/deferred.h"
#include "transform/program/image_program.h"

namespace headrace {

// Steps must fold into one view: those that crop, resize, flip and pad, with at most one that
// resamples; then, where a device follows (program.decode_share), changes of colours, erasing and
// flips; then normalize, cast and layout.  Others are refused by name.
Result<std::unique_ptr<Decoder>> make_deferred_decoder(Program program);
// OK where it would not refuse.
Status check_deferrable(const Program& program);

// A deferred value on the CPU after all: its pixels, u8[height, width, channels], as the stage
// makes them before it scales, casts and lays out; the changes are made.
Status render_deferred(const DeferredValue& value, PixelMode mode, const ImageOptions& options,
                       MutableBytes out);

// The record of a view of a picture, and back.
DeferredPicture record_of(Size source, const View& view);
View view_of(const DeferredPicture& record);

}  // namespace headrace

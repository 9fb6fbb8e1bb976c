// SPDX-License-Identifier: Apache-2.0
//
// Boxes and points of a picture, which go where its pixels go.
//
//   "boxes"   format="xyxy"|"xywh"|"cxcywh", normalized=False, key="bbox", extra="label,score",
//             min_area=1, min_visible=0            f32[?, 4 + extra]: x0 y0 x1 y1 and the extras
//   "points"  normalized=False, key="keypoints", extra="visible"             f32[?, 2 + extra]
//
// Rows come from JSON (codec/number_rows.h), from .npy files of shape [n, 4 + extra], or from
// arrays of the format: one of that shape, or one for each row. In pixels of the result.  Boxes are
// clipped to it; those of which too little is left go. Points are never dropped: a skeleton keeps
// its joints.
#pragma once

#include <memory>

#include "codec/decoder.h"
#include "transform/program/program.h"

namespace headrace {

Result<std::unique_ptr<Decoder>> make_boxes_decoder(const FieldSpec& spec);
Result<std::unique_ptr<Decoder>> make_points_decoder(const FieldSpec& spec);

}  // namespace headrace

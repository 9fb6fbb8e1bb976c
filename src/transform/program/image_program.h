// SPDX-License-Identifier: Apache-2.0
//
// What is fixed about a field of pictures when the loader is built: the steps, and how the last
// pass writes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codec/deferred.h"
#include "codec/image.h"
#include "transform/output/pixel_output.h"
#include "transform/program/program.h"
#include "transform/transform.h"

namespace headrace {

struct NamedStep {
  std::string name;
  Transform transform;
  // Steps that move pixels are numbered among themselves: so the fields of a joint share their
  // draws, whatever else is done to one of them.
  uint64_t draw = 0;
  bool moves = false;

  const Geometric* geometric() const {
    const auto* g = std::get_if<std::unique_ptr<const Geometric>>(&transform);
    return g == nullptr ? nullptr : g->get();
  }
  const PixelStep* pixels() const {
    const auto* p = std::get_if<std::unique_ptr<const PixelStep>>(&transform);
    return p == nullptr ? nullptr : p->get();
  }
};

struct Program {
  PixelMode mode = PixelMode::kRgb;
  bool fast = false;
  ImageOptions limits;
  std::vector<NamedStep> steps;  // geometric and pixel steps; those of the store are in `store`
  PixelOutput store;
  uint64_t draw_group = 0;
  Joint joint = Joint::kNone;
  int views = 1;       // results of one picture, each with draws of its own
  uint64_t share = 0;  // not 0: fields with this number take their pictures from one decode
  // The values are u8 elements of this shape and nothing else; kVaries where the length tells.
  std::optional<std::vector<int64_t>> raw;
  bool channels_first = false;                // of these, and of .npy files
  std::shared_ptr<DecodeShare> decode_share;  // see codec/deferred.h
  TensorSpec value;                           // one view
  TensorSpec output;                          // all of them
};

}  // namespace headrace

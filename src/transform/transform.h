// SPDX-License-Identifier: Apache-2.0
//
// A step between decoding and the slot, of one of three kinds:
//
//   Geometric   says where pixels come from (crop, resize, flip): a view, no pixels touched
//   PixelStep   changes pixels, u8 in and u8 out (jitter, blur)
//   StoreStep   says how the last pass writes (normalize, cast, layout); after all others
//
// The program (program.h) folds views together, the first into the decoder and the last into
// the store.  A step is one file, one test and one line in transforms.inc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "codec/deferred.h"
#include "transform/geometry/affine.h"
#include "transform/geometry/geometry.h"
#include "transform/kernels/ranges.h"
#include "transform/output/pixel_output.h"
#include "transform/params.h"
#include "transform/program/pixels.h"

namespace headrace {

// Immutable, hence thread-safe.
class Geometric {
 public:
  virtual ~Geometric() = default;
  // The result's size for a picture of size `in`; extents may be kVaries on both sides.
  virtual Size infer(Size in) const = 0;
  // Which part of a picture of size `in` to take.  A pure function of its arguments.
  virtual View view(Size in, Rng rng) const = 0;
  // Asked once when the loader is made, and for each picture before view().
  virtual Status check_channels(int) const { return {}; }
  virtual Status check_size(Size) const { return {}; }
  // Whether all it may do is to flip.
  virtual bool only_flips() const { return false; }
};

// Immutable, hence thread-safe.
class PixelStep {
 public:
  virtual ~PixelStep() = default;
  // In place.
  virtual Status apply(const Pixels& pixels, Rng rng) const = 0;
  // Where points of a picture of this size go under the same draws; nothing: they stay.
  virtual std::optional<Affine> matrix(Size, Rng) const { return std::nullopt; }
  // Whether all it does is move pixels: then a mask takes the same step with the same draws.
  virtual bool moves() const { return false; }
  // Asked once, when the loader is made.
  virtual Status check_channels(int) const { return {}; }
  // Whether all it does are PixelChanges; then changes() adds those that apply() would make under
  // the same draws, so that they can be made elsewhere.
  virtual bool has_changes() const { return false; }
  virtual void changes(Size, Rng, std::vector<PixelChange>&) const {}
};

// Changes how the last pass writes pictures of so many channels.
using StoreStep = std::function<Status(PixelOutput& store, int channels)>;

using Transform =
    std::variant<std::unique_ptr<const Geometric>, std::unique_ptr<const PixelStep>, StoreStep>;

// One row of the table.
struct TransformEntry {
  std::string_view name;
  std::string_view doc;
  Result<Transform> (*make)(Params params);
};

std::span<const TransformEntry* const> all_transforms();
// An unknown name is an error that suggests the nearest one.
Result<const TransformEntry*> find_transform(std::string_view name);

// "size" as torchvision takes it: one number for a square, or height and width.
Result<Size> size_from(const std::vector<int>& numbers);

}  // namespace headrace

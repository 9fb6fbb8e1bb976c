// SPDX-License-Identifier: Apache-2.0
//
// The table of steps.  A name listed in transforms.inc without a <name>_transform is a link error.
#include "transform/transform.h"

#include <iterator>
#include <string>
#include <vector>

namespace headrace {

#define HEADRACE_TRANSFORM(name) extern const TransformEntry name##_transform;
#include "transform/transforms.inc"
#undef HEADRACE_TRANSFORM

std::span<const TransformEntry* const> all_transforms() {
#define HEADRACE_TRANSFORM(name) &name##_transform,
  static constexpr const TransformEntry* kAll[] = {
#include "transform/transforms.inc"
  };
#undef HEADRACE_TRANSFORM
  return kAll;
}

// torchvision's name of a step that has another here.
constexpr std::string_view kHorizontalFlip = "random_horizontal_flip";

Result<const TransformEntry*> find_transform(std::string_view name) {
  if (name == kHorizontalFlip) name = "random_flip";
  std::vector<std::string_view> names;
  std::string known;
  for (const TransformEntry* t : all_transforms()) {
    if (t->name == name) return t;
    names.push_back(t->name);
    known.append(known.empty() ? "" : ", ").append(t->name);
  }
  const std::string_view meant = nearest_name(name, names);
  if (meant.empty()) return invalid("no such step; there are " + known);
  return invalid("no such step; did you mean " + std::string(meant) + "?");
}

Result<Size> size_from(const std::vector<int>& numbers) {
  if (numbers.empty() || numbers.size() > 2)
    return invalid("parameter 'size' must be one number or (height, width)");
  const Size size{numbers.back(), numbers.front()};
  constexpr int kMost = 1 << 16;  // what JPEG can hold, and far more than a batch can
  if (size.width < 1 || size.height < 1 || size.width > kMost || size.height > kMost)
    return invalid("parameter 'size' must be from 1 to 65536");
  return size;
}

}  // namespace headrace

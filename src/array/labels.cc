// SPDX-License-Identifier: Apache-2.0
#include "array/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "array/pieces.h"
#include "base/half.h"
#include "base/rng.h"

namespace headrace {
namespace {

// A draw from all elements that does not depend on the order they come in, hence not on chunks:
// those whose hash is below a limit, which is halved whenever there are too many of them.
class Kept {
 public:
  void note(uint64_t element, const int64_t* place, size_t axes) {
    const uint64_t hash = Key(0).with(element).value();
    if (hash > limit_) return;
    found_.push_back({element, hash, Extents(place, place + axes)});
    while (found_.size() > kMostLabelPlaces) {
      limit_ /= 2;
      std::erase_if(found_, [this](const Found& f) { return f.hash > limit_; });
    }
  }
  // In the order of the elements, one's indexes after the other's.
  std::vector<int64_t> places() {
    std::sort(found_.begin(), found_.end(),
              [](const Found& x, const Found& y) { return x.element < y.element; });
    std::vector<int64_t> out;
    for (const Found& f : found_) out.insert(out.end(), f.place.begin(), f.place.end());
    return out;
  }

 private:
  struct Found {
    uint64_t element = 0;
    uint64_t hash = 0;
    Extents place;
  };
  uint64_t limit_ = ~uint64_t{0};
  std::vector<Found> found_;
};
using Classes = std::map<int64_t, Kept>;

int64_t class_of(double v) {
  if (std::isnan(v)) return 0;
  return std::abs(v) < 0x1.0p62 ? static_cast<int64_t>(std::trunc(v) == 0 ? (v > 0   ? 1
                                                                             : v < 0 ? -1
                                                                                     : 0)
                                                                          : v)
                                : int64_t{1} << 62;
}

template <typename T>
struct Load {
  int64_t operator()(Bytes at) const { return static_cast<int64_t>(load_le<T>(at)); }
};
template <>
struct Load<float> {
  int64_t operator()(Bytes at) const { return class_of(static_cast<double>(load_le<float>(at))); }
};
template <>
struct Load<double> {
  int64_t operator()(Bytes at) const { return class_of(load_le<double>(at)); }
};
struct LoadF16 {
  int64_t operator()(Bytes at) const {
    return class_of(static_cast<double>(from_f16(load_le<uint16_t>(at))));
  }
};
struct LoadBF16 {
  int64_t operator()(Bytes at) const {
    return class_of(static_cast<double>(from_bf16(load_le<uint16_t>(at))));
  }
};

// Elements of one piece, last axis fastest.
template <typename LoadOne>
Status note_piece(const LoadOne& load, size_t item, Bytes dense, const Extents& shape,
                  const Region& region, size_t axes, Classes& classes) {
  const size_t rank = region.size.size();
  const Extents strides = dense_strides(shape, 1);
  Extents at = region.begin;
  for (size_t i = 0; i < dense.size(); i += item) {
    if (const int64_t value = load(dense.subspan(i)); value != 0) {
      uint64_t element = 0;
      for (size_t a = 0; a < rank; ++a) element += static_cast<uint64_t>(at[a] * strides[a]);
      classes[value].note(element, at.data() + (rank - axes), axes);
      if (classes.size() > kMostLabelClasses)
        return unsupported(fmt::format("a label of more than {} classes; patches hold one of few",
                                       kMostLabelClasses));
    }
    for (size_t a = rank; a-- > 0;) {
      if (++at[a] < region.begin[a] + region.size[a]) break;
      at[a] = region.begin[a];
    }
  }
  return {};
}

Status note_piece(DType dtype, Bytes dense, const Extents& shape, const Region& region, size_t axes,
                  Classes& classes) {
  const size_t item = size_of(dtype);
  switch (dtype) {
    case DType::kU8:
      return note_piece(Load<uint8_t>(), item, dense, shape, region, axes, classes);
    case DType::kI8:
      return note_piece(Load<int8_t>(), item, dense, shape, region, axes, classes);
    case DType::kU16:
      return note_piece(Load<uint16_t>(), item, dense, shape, region, axes, classes);
    case DType::kI16:
      return note_piece(Load<int16_t>(), item, dense, shape, region, axes, classes);
    case DType::kU32:
      return note_piece(Load<uint32_t>(), item, dense, shape, region, axes, classes);
    case DType::kI32:
      return note_piece(Load<int32_t>(), item, dense, shape, region, axes, classes);
    case DType::kU64:
      return note_piece(Load<uint64_t>(), item, dense, shape, region, axes, classes);
    case DType::kI64:
      return note_piece(Load<int64_t>(), item, dense, shape, region, axes, classes);
    case DType::kF16:
      return note_piece(LoadF16(), item, dense, shape, region, axes, classes);
    case DType::kBF16:
      return note_piece(LoadBF16(), item, dense, shape, region, axes, classes);
    case DType::kF32:
      return note_piece(Load<float>(), item, dense, shape, region, axes, classes);
    case DType::kF64:
      return note_piece(Load<double>(), item, dense, shape, region, axes, classes);
  }
  return internal("a label of no type");
}

Status look_at(const ArrayPieces& pieces, size_t axes, LabelPlaces& out) {
  Classes classes;
  Region region;
  std::vector<std::byte> dense;
  for (uint64_t n = 0; n < pieces.count(); ++n) {
    HEADRACE_TRY(pieces.read(n, region, dense));
    if (const Status s =
            note_piece(pieces.array().dtype, dense, pieces.array().shape, region, axes, classes);
        !s.ok())
      return s.with("'" + pieces.array().name + "'");
  }
  for (auto& [value, kept] : classes) out.classes.push_back(kept.places());
  return {};
}

}  // namespace

Result<std::vector<LabelPlaces>> find_labels(const ArrayDescription& description, uint32_t number,
                                             size_t axes, const Store& store, const RunJobs& run) {
  if (number >= description.variables.size()) return internal("no such variable");
  const Variable& variable = description.variables[number];
  for (const auto& array : variable.segments) {
    HEADRACE_TRY(check_array(*array));
    if (array->values || array->packed) return unsupported("a label is of whole numbers");
    if (array->shape.size() < axes)
      return invalid(fmt::format("'{}' has fewer axes than a patch", array->name));
  }
  std::vector<LabelPlaces> out(variable.segments.size());
  HEADRACE_TRY(run(out.size(), [&](size_t i) {
    return look_at(ArrayPieces(*variable.segments[i], description.files, store), axes, out[i]);
  }));
  return out;
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "array/labels.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "array/pieces.h"
#include "base/half.h"

namespace headrace {
namespace {

// Every so many-th element; where there are too many, every other one of them is let go.
struct Kept {
  uint64_t seen = 0;
  uint64_t step = 1;
  std::vector<int64_t> places;

  void note(const int64_t* place, size_t axes) {
    if (seen++ % step != 0) return;
    if (places.size() == kMostLabelPlaces * axes) {
      for (size_t i = 0; i < kMostLabelPlaces / 2; ++i)
        for (size_t a = 0; a < axes; ++a) places[i * axes + a] = places[2 * i * axes + a];
      places.resize(kMostLabelPlaces / 2 * axes);
      step *= 2;
      if ((seen - 1) % step != 0) return;
    }
    places.insert(places.end(), place, place + axes);
  }
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
Status note_piece(const LoadOne& load, size_t item, Bytes dense, const Region& region, size_t axes,
                  Classes& classes) {
  const size_t rank = region.size.size();
  Extents at = region.begin;
  for (size_t i = 0; i < dense.size(); i += item) {
    if (const int64_t value = load(dense.subspan(i)); value != 0) {
      classes[value].note(at.data() + (rank - axes), axes);
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

Status note_piece(DType dtype, Bytes dense, const Region& region, size_t axes, Classes& classes) {
  const size_t item = size_of(dtype);
  switch (dtype) {
    case DType::kU8:
      return note_piece(Load<uint8_t>(), item, dense, region, axes, classes);
    case DType::kI8:
      return note_piece(Load<int8_t>(), item, dense, region, axes, classes);
    case DType::kU16:
      return note_piece(Load<uint16_t>(), item, dense, region, axes, classes);
    case DType::kI16:
      return note_piece(Load<int16_t>(), item, dense, region, axes, classes);
    case DType::kU32:
      return note_piece(Load<uint32_t>(), item, dense, region, axes, classes);
    case DType::kI32:
      return note_piece(Load<int32_t>(), item, dense, region, axes, classes);
    case DType::kU64:
      return note_piece(Load<uint64_t>(), item, dense, region, axes, classes);
    case DType::kI64:
      return note_piece(Load<int64_t>(), item, dense, region, axes, classes);
    case DType::kF16:
      return note_piece(LoadF16(), item, dense, region, axes, classes);
    case DType::kBF16:
      return note_piece(LoadBF16(), item, dense, region, axes, classes);
    case DType::kF32:
      return note_piece(Load<float>(), item, dense, region, axes, classes);
    case DType::kF64:
      return note_piece(Load<double>(), item, dense, region, axes, classes);
  }
  return internal("a label of no type");
}

Status look_at(const ArrayPieces& pieces, size_t axes, LabelPlaces& out) {
  Classes classes;
  Region region;
  std::vector<std::byte> dense;
  for (uint64_t n = 0; n < pieces.count(); ++n) {
    HEADRACE_TRY(pieces.read(n, region, dense));
    if (const Status s = note_piece(pieces.array().dtype, dense, region, axes, classes); !s.ok())
      return s.with("'" + pieces.array().name + "'");
  }
  for (auto& [value, kept] : classes) out.classes.push_back(std::move(kept.places));
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

// SPDX-License-Identifier: Apache-2.0
#include "open/array_selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "array/pieces.h"
#include "array/unpack.h"

namespace headrace {
namespace {

constexpr double kNear = 1e-6;     // of the value: coordinates are often rounded to f32
constexpr size_t kMostShown = 20;  // values in an error

bool is_near(double known, double wanted) {
  return std::abs(known - wanted) <= kNear * std::abs(wanted);
}

}  // namespace

Result<std::vector<double>> coordinate_values(const FileArray& coordinate, const Store& store) {
  const Array& array = *coordinate.array;
  const ArrayPieces pieces(array, coordinate.files, store);
  std::vector<double> out(static_cast<size_t>(elements_in(array.shape)));
  Region region;
  std::vector<std::byte> dense;
  for (uint64_t p = 0; p < pieces.count(); ++p) {
    HEADRACE_TRY(pieces.read(p, region, dense));
    std::vector<std::byte> numbers(dense.size() / size_of(array.dtype) * sizeof(double));
    unpack_numbers(array, dense, DType::kF64, numbers);
    for (size_t i = 0; i * sizeof(double) < numbers.size(); ++i)
      out[static_cast<size_t>(region.begin[0]) + i] =
          load_le<double>(Bytes(numbers).subspan(i * sizeof(double)));
  }
  return out;
}

Result<std::vector<int64_t>> find_indexes(const std::string& axis, int64_t extent,
                                          const FileArray* coordinate,
                                          const std::vector<double>& wanted, const Store& store) {
  std::vector<int64_t> out;
  if (wanted.empty()) return invalid(fmt::format("select: '{}' names no value", axis));
  if (coordinate == nullptr) {
    for (const double value : wanted) {
      if (!(value >= 0 && value < static_cast<double>(extent)) || value != std::floor(value))
        return invalid(
            fmt::format("select: there is no index {} on '{}', which has {} and no coordinate",
                        value, axis, extent));
      out.push_back(static_cast<int64_t>(value));
    }
    return out;
  }
  HEADRACE_ASSIGN(const std::vector<double> known, coordinate_values(*coordinate, store));
  for (const double value : wanted) {
    const auto is_it = [value](double k) { return is_near(k, value); };
    const auto found = std::find_if(known.begin(), known.end(), is_it);
    const auto count = std::count_if(known.begin(), known.end(), is_it);
    if (count != 1) {
      const auto end =
          known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kMostShown));
      return invalid(fmt::format("select: '{}' has {} value {}; it has {}", axis,
                                 count == 0 ? "no" : "several", value,
                                 fmt::join(known.begin(), end, ", ")));
    }
    out.push_back(found - known.begin());
  }
  return out;
}

}  // namespace headrace

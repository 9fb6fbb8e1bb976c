// SPDX-License-Identifier: Apache-2.0
//
// Arrays: elements as they lie (little-endian, last axis fastest), or a .npy file that says
// itself what it holds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/decoder.h"

namespace headrace {

// How the values of a field hold arrays, as far as it is known before data moves.
struct StoredArray {
  bool is_npy = false;
  // Of each element; of a .npy the first sample's.  Unset: whatever a .npy says.
  std::optional<DType> dtype = {};
  // kVaries once at most, where the length tells; of a .npy the first sample's.
  std::vector<int64_t> shape = {};
};

struct ArrayPlan {
  StoredArray stored;
  // Every value of a .npy field has the shape of the first; else only as many axes.
  bool one_shape = true;
  // What values are brought into: as many elements, kVaries once at most.
  std::optional<std::vector<int64_t>> shape = {};
  DType dtype = DType::kF32;  // of the result
  // Values with one axis are cut to so many elements; 0: they are not.
  uint64_t most_elements = 0;
  bool keep_end = false;  // of a value that is cut, the end instead of the beginning
  // (value - mean) / std, in f32: none, one, or one for each of the last axis; with `repeat`, each
  // for so many elements on end, and again from the first.
  std::vector<float> mean = {}, deviation = {};
  uint64_t repeat = 0;
  // Axes, counted from the last (-1), that are turned round, each with this chance.
  std::vector<int> flips = {};
  double flip_chance = 0;
};

// A .npy of another shape or type than the first sample's is kInvalidArgument: the data is good,
// and the text names what to ask for.
Result<std::unique_ptr<Decoder>> make_array_decoder(ArrayPlan plan);

// `shape` with its kVaries, if it has one, counted out so that there are `elements`; kCorrupt
// where that cannot be.
Result<std::vector<int64_t>> fit_shape(const std::vector<int64_t>& shape, uint64_t elements);

// "(3, 4)", "(5,)", "()", as Python writes it; "?" for what varies.
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace headrace

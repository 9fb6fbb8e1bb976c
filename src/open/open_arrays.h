// SPDX-License-Identifier: Apache-2.0
//
// Files of arrays by their names, as a Source: for who opens them without Python.  npy, Zarr
// and classic NetCDF by their metadata; HDF5 and NetCDF-4 by the index that headrace in Python
// keeps (array_indexes.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "array/array_source.h"
#include "base/status.h"

namespace headrace {

// One field of a sample: some steps of a variable around the sample's position, a patch of its last
// axes.
struct ArrayWindow {
  std::string name;                 // of the field
  std::string variable;             // "": as the field
  int64_t steps = 0;                // along the axis; 0: one, and the axis is left out
  int64_t from = 0;                 // relative to the position: a target begins behind the window
  int64_t dilation = 1;             // from one step to the next
  std::vector<int64_t> patch = {};  // of the last axes, drawn for each sample
  // Of an axis: values of its coordinate, or indexes where it has none (array_selection.h).
  std::map<std::string, std::vector<double>> select = {};
};

struct OpenArrayOptions {
  std::string index = {};  // a folder that `headrace index` made; "": beside the data, or the cache
  std::vector<ArrayWindow> windows = {};  // none: every variable that has the axis, one step
  std::string along = {};  // the axis that samples run along; "": the first of the first variable
  int64_t stride = 1;
  bool tiled = false;  // patches stand side by side, each a sample
  bool gaps = false;   // samples may go over gaps of the axis's coordinate
};

struct OpenedArrays {
  std::shared_ptr<const Source> source;
  std::string format;
  std::vector<std::string> notices;
};

// By the names alone.
bool are_array_files(const std::vector<std::string>& urls);

// Files follow each other along the axis; they must have the same units.  Samples of several steps
// that would go over a gap are left out, and a notice says how many.
Result<OpenedArrays> open_array_files(const std::vector<std::string>& urls,
                                      const OpenArrayOptions& options);

}  // namespace headrace

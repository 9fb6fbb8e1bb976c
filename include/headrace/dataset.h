// SPDX-License-Identifier: Apache-2.0
//
// Dataset: samples by number, whatever format they lie in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headrace/array.h"
#include "headrace/error.h"
#include "headrace/field.h"

namespace hr {

// Of files of arrays: one field of a sample, some steps of a variable from the sample's position
// on.
struct Window {
  std::string name;                 // of the field, for hr::array(name)
  std::string variable = {};        // "": as the field
  int64_t steps = 0;                // along the axis; 0: one, and the axis is left out
  int64_t from = 0;                 // relative to the position: a target begins behind the window
  int64_t dilation = 1;             // from one step to the next
  std::vector<int64_t> patch = {};  // of the last axes, drawn for each sample
  // Of some axes: values of their coordinates (within a millionth), or indexes where they have
  // none: {{"level", {500, 850}}}.  The axis stays, also for one value.
  std::map<std::string, std::vector<double>> select = {};
};

struct OpenOptions {
  std::string index = {};  // a folder that `headrace index` made
  std::string root = {};   // of the paths in a list
  // Of files of arrays (.npy, .nc, .zarr, .h5): what a sample holds; none: every variable that has
  // the axis, one step of each.
  std::vector<Window> windows = {};
  std::string along = {};  // the axis that samples run along; "": the first of the first variable
  int64_t stride = 1;      // from one sample's position to the next
  bool tiled = false;      // patches stand side by side, each a sample
  bool gaps = false;       // samples may go over gaps of the axis's coordinate
};

// Cheap to copy; copies share what is open.  Thread-safe.
class HEADRACE_API Dataset {
 public:
  struct FieldInfo {
    std::string name;
    std::string kind;  // "jpeg", "int", "text", "json", "bytes", …
  };

  uint64_t size() const;
  std::vector<FieldInfo> fields() const;
  std::string fingerprint() const;
  std::string key(uint64_t sample) const;

  // These samples, in this order, as a data set of their own.
  Dataset take(std::vector<uint64_t> samples) const;

  // One sample; without `fields` everything as it lies.  Fields that it lacks are left out.
  // Several values of one field are an error; lists() gives them.
  std::map<std::string, Array> at(uint64_t sample, const Fields& fields = {}) const;
  // Likewise, with every value of every field.
  std::map<std::string, std::vector<Array>> lists(uint64_t sample, const Fields& fields = {}) const;

  struct Inside;
  explicit Dataset(std::shared_ptr<const Inside> inside) : inside_(std::move(inside)) {}
  const Inside& inside() const { return *inside_; }

 private:
  std::shared_ptr<const Inside> inside_;
};

// A path, a glob, braces ("train-{0000..0007}.tar"), a folder, or a list of them.
HEADRACE_API Dataset open(const std::vector<std::string>& urls, const OpenOptions& options = {});
HEADRACE_API Dataset open(const std::string& url, const OpenOptions& options = {});

}  // namespace hr

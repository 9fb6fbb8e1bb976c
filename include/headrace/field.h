// SPDX-License-Identifier: Apache-2.0
//
// What to make of a field of the data.  A description: it is checked when a loader is made.
//
//   hr::image("jpg").random_resized_crop(224, {.scale = {0.2, 1}}).random_flip()
//       .normalize(hr::kImageNet)
//
// Steps are methods with the names, parameters and defaults of Python's: what must be given comes
// first, what may be left out is a member of an options struct (step_options.h).  step() takes them
// by name, and those of arrays: hr::array("x").step("random_flip", {{"axes", -1}}).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/array.h"
#include "headrace/error.h"
#include "headrace/step_options.h"
#include "headrace/value.h"

namespace hr {

// A function of one value: of one element type and shape, which it declares; -1 where an extent
// varies.  Called by several threads at a time.  A DataError that it throws is a bad sample.
struct MapFunction {
  std::function<Array(const Array&)> function;
  std::string dtype;
  std::vector<int64_t> shape;
};

// Of the pixels of pictures, as values / 255; one for each channel.
struct MeanAndStd {
  Numbers mean, std;
};
inline const MeanAndStd kImageNet{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};

struct Field {
  // "image", "scalar", "array", "tokens", "text", "bytes", "json", "key", "boxes", "points"
  std::string what;
  std::string field;
  Values options;
  std::vector<std::pair<std::string, Values>> steps;
  std::string packing;   // "": dense where the shape is fixed; "list", "padded", "ragged"
  bool many = false;     // any number of values a sample
  bool is_mask = false;  // class numbers: resampled to the nearest pixel, never blended
  std::string group;     // of hr::joint(); "": none
  bool leads = false;    // the picture that the group follows
  std::optional<Value> pad_value = {};  // what padded values are filled up with; 0 unless given
  std::optional<Value> otherwise = {};  // in place of a value that a sample lacks
  bool is_optional = false;  // a sample may lack it; column NAME_valid says which have it
  std::optional<MapFunction> function = {};

  Field step(std::string name, Values values = {}) const {
    Field out = *this;
    out.steps.emplace_back(std::move(name), std::move(values));
    return out;
  }
#include "headrace/step_methods.inc"

  Field normalize(const MeanAndStd& both) const { return normalize(both.mean, both.std); }

  // Takes any number of values a sample; Column::first then says which are whose.
  Field each() const {
    Field out = *this;
    out.many = true;
    return out;
  }
  Field packed(std::string how) const {
    Field out = *this;
    out.packing = std::move(how);
    return out;
  }
  Field list() const { return packed("list"); }
  Field ragged() const { return packed("ragged"); }
  // Values are filled up with `value`, a number of the field's type, to the largest of the batch.
  Field padded(Value value = 0) const {
    Field out = packed("padded");
    out.pad_value = std::move(value);
    return out;
  }
  // What a sample that lacks the field gets: a number, a text (of text, bytes, JSON and boxes), or
  // a list of numbers (an array with one axis; of a picture, a level for each channel).  The steps
  // and the function follow.
  Field with_default(Value value) const {
    Field out = *this;
    out.otherwise = std::move(value);
    return out;
  }
  // A sample may lack it: it gets zeros, and the batch has a column NAME_valid, one u8 a sample.
  Field optional() const {
    Field out = *this;
    out.is_optional = true;
    return out;
  }
  // Calls a function for every value, after the steps.
  Field map(std::function<Array(const Array&)> call, std::string dtype,
            std::vector<int64_t> shape = {}) const {
    Field out = *this;
    out.function = MapFunction{std::move(call), std::move(dtype), std::move(shape)};
    return out;
  }
};

inline Field image(std::string field, Values options = {}) {
  return {"image", std::move(field), std::move(options), {}, ""};
}
inline Field scalar(std::string field, Values options = {}) {
  return {"scalar", std::move(field), std::move(options), {}, ""};
}
// Options dtype (what bytes hold, or what values become) and shape; steps normalize and cast.
inline Field array(std::string field, Values options = {}) {
  return {"array", std::move(field), std::move(options), {}, ""};
}
inline Field tokens(std::string field, Values options = {}) {
  return {"tokens", std::move(field), std::move(options), {}, ""};
}
inline Field text(std::string field) {
  return {"text", std::move(field), {}, {}, ""};
}
inline Field bytes(std::string field) {
  return {"bytes", std::move(field), {}, {}, ""};
}
// The JSON as text, checked.
inline Field json(std::string field) {
  return {"json", std::move(field), {}, {}, ""};
}
// One u8 class number a pixel; its steps move pixels and take the nearest.
inline Field mask(std::string field, std::string mode = "P") {
  Field out{"image", std::move(field), {{"mode", std::move(mode)}}, {}, ""};
  out.is_mask = true;
  return out;
}
// Boxes and points of a JSON field; options as in Python.  Within hr::joint() they go where the
// picture goes.
inline Field boxes(std::string field, Values options = {}) {
  return {"boxes", std::move(field), std::move(options), {}, ""};
}
inline Field points(std::string field, Values options = {}) {
  return {"points", std::move(field), std::move(options), {}, ""};
}
inline Field key() {
  return {"key", "", {}, {}, ""};
}

// The outputs of a batch, in order.
using Fields = std::vector<std::pair<std::string, Field>>;

// Fields that share their draws: every crop, flip and rotation falls alike on all of them.  The
// first picture leads, and comes first.  Add the others to what it returns:
//
//   hr::Fields fields = hr::joint({{"image", hr::image("jpg").random_flip()},
//                                  {"mask", hr::mask("png").random_flip()}});
//   fields.emplace_back("label", hr::scalar("cls"));
HEADRACE_API Fields joint(const Fields& fields);

}  // namespace hr

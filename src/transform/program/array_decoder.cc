// SPDX-License-Identifier: Apache-2.0
#include "transform/program/array_decoder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "codec/number.h"

namespace headrace {
namespace {

bool is_integer(DType dtype) {
  return dtype <= DType::kI64;
}

Result<DType> type_named(const std::string& name) {
  if (const auto found = dtype_named(name)) return *found;
  std::string known;
  for (size_t i = 0; i < kDTypes; ++i)
    known.append(known.empty() ? "" : " ").append(dtype_name(static_cast<DType>(i)));
  return invalid("there is no type '" + name + "'; the types are " + known);
}

// What the user wrote: options and steps.
struct Wishes {
  std::optional<DType> dtype;  // the option
  std::optional<std::vector<int64_t>> shape;
  std::optional<DType> cast;  // the step
  std::vector<float> mean, deviation;
  uint64_t repeat = 0;
  std::vector<int> flips;
  double flip_chance = 0;
  uint64_t most_elements = 0;
  bool keep_end = false;
};

Status read_shape(Params& options, Wishes& out) {
  const bool is_given = options.values().count("shape") != 0;
  std::vector<int64_t> shape;
  for (const double n : options.take_numbers("shape", {})) {
    if (!(n >= -1 && n <= 0x1.0p40) || n != std::floor(n))
      return invalid("parameter 'shape' holds whole numbers, and -1 once");
    shape.push_back(static_cast<int64_t>(n));
  }
  if (is_given) out.shape = std::move(shape);
  return {};
}

Status read_numbers(const std::vector<double>& from, std::vector<float>& to) {
  for (const double n : from) {
    if (!std::isfinite(n)) return invalid("mean and std are finite numbers");
    to.push_back(static_cast<float>(n));
  }
  return {};
}

Status read_normalize(Params params, Wishes& out) {
  const std::vector<double> mean = params.need_numbers("mean");
  const std::vector<double> deviation = params.need_numbers("std");
  const double repeat = params.take_number("repeat", 0);
  HEADRACE_TRY(params.done());
  if (mean.empty() || mean.size() != deviation.size())
    return invalid("mean and std have the same length, from 1 on");
  if (!(repeat >= 0 && repeat <= 0x1.0p40)) return invalid("repeat is a number of elements");
  out.repeat = static_cast<uint64_t>(repeat);
  HEADRACE_TRY(read_numbers(mean, out.mean));
  HEADRACE_TRY(read_numbers(deviation, out.deviation));
  for (const float d : out.deviation)
    if (d == 0) return invalid("std must not be 0");
  return {};
}

Status read_flip(Params params, Wishes& out) {
  if (!out.flips.empty()) return invalid("must come once");
  out.flips = params.need_integers("axes");
  out.flip_chance = params.take_number("p", 0.5);
  HEADRACE_TRY(params.done());
  for (const int axis : out.flips)
    if (axis >= 0 || std::count(out.flips.begin(), out.flips.end(), axis) > 1)
      return invalid("axes are counted from the last, -1, each once");
  if (!(out.flip_chance >= 0 && out.flip_chance <= 1)) return invalid("p is from 0 to 1");
  return {};
}

Status read_truncate(Params params, Wishes& out) {
  if (out.most_elements > 0) return invalid("must come once");
  const std::vector<double> given = params.need_numbers("length");
  const std::string side = params.take_text("side", "right");
  HEADRACE_TRY(params.done());
  if (given.size() != 1 || !(given[0] >= 1 && given[0] <= 0x1.0p40) ||
      given[0] != std::floor(given[0]))
    return invalid("length is a whole number from 1 on");
  if (side != "right" && side != "left")
    return invalid("side is \"right\" or \"left\", where elements are cut off, not \"" + side +
                   "\"");
  out.most_elements = static_cast<uint64_t>(given[0]);
  out.keep_end = side == "left";
  return {};
}

Status read_step(const Step& step, Wishes& out) {
  if (step.name == "truncate") return read_truncate(step.params, out);
  if (step.name == "random_flip") return read_flip(step.params, out);
  if (step.name == "cast") {
    Params params = step.params;
    const std::string name = params.need_text("dtype");
    HEADRACE_TRY(params.done());
    HEADRACE_ASSIGN(out.cast, type_named(name));
    return {};
  }
  if (step.name != "normalize")
    return invalid("arrays take truncate, normalize, random_flip and cast");
  if (out.cast || !out.mean.empty()) return invalid("must come once, and before cast");
  return read_normalize(step.params, out);
}

Result<Wishes> read_wishes(const FieldSpec& spec) {
  Wishes out;
  Params options = spec.options;
  const std::string dtype = options.take_text("dtype", "");
  if (spec.what == "scalar")
    out.shape.emplace();
  else
    HEADRACE_TRY(read_shape(options, out));
  HEADRACE_TRY(options.done());
  if (!dtype.empty()) {
    HEADRACE_ASSIGN(out.dtype, type_named(dtype));
  }
  if (spec.what == "scalar" && !spec.steps.empty())
    return invalid("step 1 " + spec.steps[0].name + ": a scalar takes dtype=, and no steps");
  for (size_t i = 0; i < spec.steps.size(); ++i)
    if (const Status s = read_step(spec.steps[i], out); !s.ok())
      return s.with("step " + std::to_string(i + 1) + " " + spec.steps[i].name);
  if (out.dtype && out.cast && spec.array)
    return invalid("dtype= and .cast() say the same thing; one will do");
  const std::optional<DType> result = out.cast || !spec.array ? out.cast : out.dtype;
  if (!out.mean.empty() && result && is_integer(*result))
    return invalid("after normalize values are no integers; cast to f16, bf16, f32 or f64");
  return out;
}

// Digits, or the eight bytes of an index.
Result<std::unique_ptr<Decoder>> make_number(const FieldSpec& spec, const Wishes& wishes) {
  const bool floating = spec.stored == Stored::kInlineFloat ||
                        (spec.stored == Stored::kBytes && spec.digits == Digits::kReal);
  DType dtype = floating ? DType::kF64 : DType::kI64;
  // An array is of the type that the data hold, a scalar always of the widest.
  if (spec.what == "array" && spec.number_type && *spec.number_type != DType::kF16 &&
      *spec.number_type != DType::kBF16)
    dtype = *spec.number_type;
  if (wishes.shape && !wishes.shape->empty())
    return invalid("the values are single numbers, of shape ()");
  if (!wishes.mean.empty() || !wishes.flips.empty())
    return invalid("single numbers are neither normalized nor flipped");
  if (wishes.most_elements > 0) return invalid("single numbers are not cut to a length");
  if (spec.what == "tokens") return invalid("the values are single numbers; hr.scalar takes them");
  const NumberForm form = spec.stored == Stored::kInlineInt     ? NumberForm::kInt64
                          : spec.stored == Stored::kInlineFloat ? NumberForm::kFloat64
                                                                : NumberForm::kText;
  return make_number_decoder(form, wishes.cast.value_or(wishes.dtype.value_or(dtype)));
}

// A scalar is int64 or float64 whatever the data hold, unless the user says otherwise.
DType result_type(const FieldSpec& spec, const Wishes& wishes, bool dtype_is_stored) {
  if (wishes.cast) return *wishes.cast;
  if (wishes.dtype && !dtype_is_stored) return *wishes.dtype;
  if (!wishes.mean.empty()) return DType::kF32;
  const DType stored = dtype_is_stored ? *wishes.dtype : *spec.array->dtype;
  if (spec.what != "scalar") return stored;
  return is_integer(stored) ? DType::kI64 : DType::kF64;
}

Status check_tokens(const ArrayPlan& plan) {
  const std::vector<int64_t>& shape = plan.shape.value_or(plan.stored.shape);
  if (shape.size() == 1) return {};
  return invalid("tokens have one axis, and values are of shape " + shape_text(shape) +
                 "; hr.array takes them");
}

}  // namespace

bool chooses_array(const FieldSpec& spec) {
  const auto wishes = read_wishes(spec);
  return wishes.ok() && (wishes.value().dtype || wishes.value().cast) && wishes.value().shape;
}

Result<std::unique_ptr<Decoder>> make_numbers_decoder(const FieldSpec& spec) {
  HEADRACE_ASSIGN(Wishes wishes, read_wishes(spec));
  const bool raw_bytes = !spec.array;
  if (raw_bytes &&
      (spec.stored != Stored::kBytes || spec.digits != Digits::kNone || spec.what == "scalar"))
    return make_number(spec, wishes);
  ArrayPlan plan;
  if (raw_bytes) {
    if (!wishes.dtype) return invalid("the values are bytes: say what they hold, dtype=\"f32\"");
    plan.stored = {false, wishes.dtype, wishes.shape.value_or(std::vector<int64_t>{kVaries})};
  } else {
    plan.stored = *spec.array;
    // A type that was asked for is what every .npy becomes, whatever it holds.
    if (plan.stored.is_npy && (wishes.dtype || wishes.cast)) plan.stored.dtype.reset();
  }
  plan.one_shape = spec.one_shape;
  plan.shape = std::move(wishes.shape);
  plan.dtype = result_type(spec, wishes, raw_bytes);
  plan.mean = std::move(wishes.mean);
  plan.deviation = std::move(wishes.deviation);
  plan.repeat = wishes.repeat;
  plan.flips = std::move(wishes.flips);
  plan.flip_chance = wishes.flip_chance;
  plan.most_elements = wishes.most_elements;
  plan.keep_end = wishes.keep_end;
  if (spec.what == "tokens") {
    HEADRACE_TRY(check_tokens(plan));
    if (plan.stored.is_npy && !plan.shape) plan.one_shape = false;
  }
  return make_array_decoder(std::move(plan));
}

}  // namespace headrace

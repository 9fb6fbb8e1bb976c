// SPDX-License-Identifier: Apache-2.0
#include "codec/array.h"

#include <algorithm>
#include <limits>

#include "base/buffer.h"
#include "codec/elements.h"
#include "codec/json_array.h"

namespace headrace {
namespace {

constexpr size_t kMostAxes = 32;  // as many as NumPy 1 allows

// Memory between two conversions, the thread's own.
MutableBytes scratch(int which, size_t bytes) {
  static thread_local Buffer buffers[2];
  buffers[which].resize(bytes);
  return buffers[which].span();
}

uint64_t elements_of(const std::vector<int64_t>& shape) {
  uint64_t n = 1;
  for (const int64_t extent : shape) n *= static_cast<uint64_t>(extent);
  return n;
}

// Turns the order of `count` runs of `run` bytes round, again and again to the end.
void turn_round(MutableBytes room, size_t count, size_t run) {
  for (size_t at = 0; at < room.size(); at += count * run)
    for (size_t i = 0, k = count - 1; i < k; ++i, --k)
      std::swap_ranges(room.data() + at + i * run, room.data() + at + (i + 1) * run,
                       room.data() + at + k * run);
}

// A value, with its elements little-endian, last axis fastest.
struct Opened {
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  Bytes elements;
  uint64_t begin = 0;  // of the elements in the value
};

// Immutable, hence thread-safe.
class ArrayDecoder final : public Decoder {
 public:
  ArrayDecoder(ArrayPlan plan, TensorSpec output)
      : plan_(std::move(plan)), output_(std::move(output)) {}
  const TensorSpec& output() const override { return output_; }
  bool keeps_elements() const override {
    return !plan_.stored.is_npy && plan_.stored.dtype == output_.dtype && plan_.mean.empty() &&
           plan_.most_elements == 0 && plan_.flips.empty() && output_.is_fixed();
  }

  std::optional<Conversion> converts() const override {
    if (plan_.stored.is_npy || !plan_.stored.dtype || !plan_.mean.empty()) return std::nullopt;
    if (plan_.most_elements > 0) return std::nullopt;
    if (!plan_.flips.empty() || !output_.is_fixed()) return std::nullopt;
    return Conversion{*plan_.stored.dtype, output_.dtype};
  }

  bool is_light() const override { return plan_.mean.empty(); }

  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    const Bytes value = inputs[0];
    Opened opened;
    HEADRACE_TRY(plan_.stored.is_npy ? open_npy(value, opened) : open_raw(value, opened));
    truncate(opened);
    HEADRACE_ASSIGN(const MutableBytes room, out.room(opened.shape));
    if (room.size() != elements_of(opened.shape) * size_of(output_.dtype))
      return internal("the slot has another size than its shape");
    const Status status = plan_.mean.empty()
                              ? convert_elements(opened.elements, opened.dtype, room, output_.dtype)
                              : normalize(opened, room);
    if (status.ok()) flip(opened.shape, context.draws(), room);
    const int64_t inner = status.place().offset;
    if (status.ok() || inner < 0 || opened.begin == 0) return status;
    return Status(status.code(), std::string(status.message()))
        .at(opened.begin + static_cast<uint64_t>(inner));
  }

 private:
  void truncate(Opened& value) const {
    const uint64_t most = plan_.most_elements;
    if (most == 0 || value.shape.size() != 1 || static_cast<uint64_t>(value.shape[0]) <= most)
      return;
    const size_t bytes = most * size_of(value.dtype);
    if (plan_.keep_end) value.begin += value.elements.size() - bytes;
    value.elements = plan_.keep_end ? value.elements.last(bytes) : value.elements.first(bytes);
    value.shape[0] = static_cast<int64_t>(most);
  }

  // Drawn by the axis alone, and so alike for all fields of a sample.
  void flip(const std::vector<int64_t>& shape, Key draws, MutableBytes room) const {
    for (const int axis : plan_.flips) {
      Rng rng(draws.with("flip").with(static_cast<uint64_t>(-axis)));
      if (rng.uniform() >= plan_.flip_chance || room.empty()) continue;
      const auto back = static_cast<size_t>(-axis);
      if (back > shape.size()) continue;  // shapes may vary: checked where they do not
      size_t inner = size_of(output_.dtype);
      for (size_t a = shape.size() - back + 1; a < shape.size(); ++a)
        inner *= static_cast<size_t>(shape[a]);
      turn_round(room, static_cast<size_t>(shape[shape.size() - back]), inner);
    }
  }

  Status open_raw(Bytes value, Opened& out) const {
    out.dtype = *plan_.stored.dtype;
    out.elements = value;
    const size_t size = size_of(out.dtype);
    if (value.size() % size != 0)
      return corrupt(std::to_string(value.size()) + " bytes are no whole number of " +
                     std::string(dtype_name(out.dtype)) + " elements");
    HEADRACE_ASSIGN(out.shape,
                    fit_shape(plan_.shape.value_or(plan_.stored.shape), value.size() / size));
    return {};
  }

  // A list of JSON: its numbers, in the type and with the axes of the first sample's where they
  // fit.
  Status open_json(Bytes value, Opened& out) const {
    HEADRACE_ASSIGN(JsonArray array, parse_json_array(value));
    const StoredArray& first = plan_.stored;
    // Tokens, of which no first sample was asked.
    if (first.shape == std::vector<int64_t>{kVaries} &&
        (array.is_real || array.has_truth_values || array.shape.size() != 1))
      return corrupt("no list of whole numbers, which tokens are");
    if (first.dtype == DType::kF64) HEADRACE_TRY(array.make_real());
    out.dtype = array.is_real ? DType::kF64 : DType::kI64;
    if (array.size() == 0 && !plan_.shape && first.shape.size() > 1) {  // [] among [[1, 2], …]
      array.shape = first.shape;
      array.shape[0] = 0;
    }
    HEADRACE_TRY(check_promise(out.dtype, array.shape));
    const MutableBytes plain = scratch(0, array.size() * sizeof(int64_t));
    for (size_t i = 0; i < array.size(); ++i) {
      const MutableBytes at = plain.subspan(i * sizeof(int64_t));
      if (array.is_real)
        store_le(at, array.reals[i]);
      else
        store_le(at, array.integers[i]);
    }
    out.elements = plain;
    out.shape = std::move(array.shape);
    if (!plan_.shape) return {};
    HEADRACE_ASSIGN(out.shape, fit_shape(*plan_.shape, array.size()));
    return {};
  }

  Status open_npy(Bytes value, Opened& out) const {
    if (begins_json_list(value)) return open_json(value, out);
    HEADRACE_ASSIGN(NpyArray array, headrace::open_npy(value, value.size()));
    HEADRACE_TRY(check_promise(array.dtype, array.shape));
    out.dtype = array.dtype;
    out.elements = value.subspan(array.header.data);
    out.begin = array.header.data;
    if (!array.is_plain()) {
      const MutableBytes plain = scratch(0, array.header.data_bytes());
      HEADRACE_TRY(array.copy(value, plain));
      out.elements = plain;
      out.begin = 0;
    }
    if (!plan_.shape) {
      out.shape = std::move(array.shape);
      return {};
    }
    HEADRACE_ASSIGN(out.shape, fit_shape(*plan_.shape, array.header.items));
    return {};
  }

  Status check_promise(DType dtype, const std::vector<int64_t>& shape) const {
    const StoredArray& first = plan_.stored;
    if (first.dtype && *first.dtype != dtype)
      return invalid("the elements are " + std::string(dtype_name(dtype)) +
                     ", of the first sample " + std::string(dtype_name(*first.dtype)) +
                     ": say dtype=\"…\", which all of them become");
    if (plan_.shape) return {};
    if (plan_.one_shape && shape != first.shape)
      return invalid("the shape is " + shape_text(shape) + ", of the first sample " +
                     shape_text(first.shape) +
                     ": ask for .list(), .padded() or .ragged(), or say shape=(…)");
    if (shape.size() != first.shape.size())
      return invalid("the shape is " + shape_text(shape) + ", of the first sample " +
                     shape_text(first.shape) + ": say shape=(…) to bring them to as many axes");
    return {};
  }

  Status normalize(const Opened& opened, MutableBytes room) const {
    const size_t count = opened.elements.size() / size_of(opened.dtype);
    const MutableBytes floats = scratch(1, count * sizeof(float));
    HEADRACE_TRY(convert_elements(opened.elements, opened.dtype, floats, DType::kF32));
    const size_t run = std::max<size_t>(1, plan_.repeat);
    for (size_t i = 0, c = 0; i < count; c = c + 1 == plan_.mean.size() ? 0 : c + 1)
      for (const size_t end = std::min(count, i + run); i < end; ++i) {
        const MutableBytes at = floats.subspan(i * sizeof(float));
        store_le(at, (load_le<float>(at) - plan_.mean[c]) / plan_.deviation[c]);
      }
    return convert_elements(floats, DType::kF32, room, output_.dtype);
  }

  const ArrayPlan plan_;
  const TensorSpec output_;
};

size_t varying(const std::vector<int64_t>& shape) {
  return static_cast<size_t>(std::count(shape.begin(), shape.end(), kVaries));
}

Status check_shape(const std::vector<int64_t>& shape) {
  if (varying(shape) > 1) return invalid("shape may leave one extent open (-1), not several");
  if (shape.size() > kMostAxes) return invalid("shape has too many axes");
  uint64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < kVaries) return invalid("shape holds extents from 0 on, and -1 once");
    const auto n = static_cast<uint64_t>(std::max<int64_t>(1, extent));
    if (n > (uint64_t{1} << 40) / elements) return invalid("shape has more than 2^40 elements");
    elements *= n;
  }
  return {};
}

// What a plan gives.
Result<std::vector<int64_t>> output_shape(const ArrayPlan& plan) {
  if (plan.shape) {
    HEADRACE_TRY(check_shape(*plan.shape));
    const bool known = plan.stored.is_npy ? plan.one_shape && !plan.stored.shape.empty()
                                          : varying(plan.stored.shape) == 0;
    if (varying(*plan.shape) == 0 || !known) return *plan.shape;
    return fit_shape(*plan.shape, elements_of(plan.stored.shape));
  }
  HEADRACE_TRY(check_shape(plan.stored.shape));
  std::vector<int64_t> shape = plan.stored.shape;
  if (plan.stored.is_npy && !plan.one_shape) std::fill(shape.begin(), shape.end(), kVaries);
  return shape;
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i > 0 ? ", " : "") + (shape[i] == kVaries ? "?" : std::to_string(shape[i]));
  return out + (shape.size() == 1 ? ",)" : ")");
}

Result<std::vector<int64_t>> fit_shape(const std::vector<int64_t>& shape, uint64_t elements) {
  uint64_t known = 1;
  for (const int64_t extent : shape)
    if (extent != kVaries) known *= static_cast<uint64_t>(extent);
  const bool open = varying(shape) > 0;
  const bool fits = open ? (known == 0 ? elements == 0 : elements % known == 0) : known == elements;
  if (!fits)
    return corrupt("there are " + std::to_string(elements) + " elements, which do not make " +
                   shape_text(shape));
  std::vector<int64_t> out = shape;
  for (int64_t& extent : out)
    if (extent == kVaries) extent = known == 0 ? 0 : static_cast<int64_t>(elements / known);
  return out;
}

Result<std::unique_ptr<Decoder>> make_array_decoder(ArrayPlan plan) {
  HEADRACE_ASSIGN(std::vector<int64_t> shape, output_shape(plan));
  const size_t last = plan.mean.size();
  if (plan.mean.size() != plan.deviation.size())
    return invalid("mean and std have different lengths");
  if (plan.repeat > 0) {
    const uint64_t elements = varying(shape) > 0 ? 0 : elements_of(shape);
    if (plan.repeat > elements || elements / plan.repeat % last != 0)
      return invalid("statistics for " + std::to_string(last) +
                     " parts do not fit values of shape " + shape_text(shape));
  } else if (last > 1 && (shape.empty() || shape.back() != static_cast<int64_t>(last)))
    return invalid("mean and std have " + std::to_string(last) +
                   " numbers, and values are of shape " + shape_text(shape) +
                   ": give one number, or one for each of the last axis");
  for (const int axis : plan.flips)
    if (axis >= 0 || static_cast<size_t>(-axis) > shape.size())
      return invalid("there is no axis " + std::to_string(axis) + " to flip: values are of shape " +
                     shape_text(shape));
  if (plan.most_elements > 0) {
    if (shape.size() != 1)
      return invalid("only values with one axis are cut to a length, and these are of shape " +
                     shape_text(shape));
    if (shape[0] != kVaries)
      shape[0] = std::min(shape[0], static_cast<int64_t>(plan.most_elements));
  }
  TensorSpec output{plan.dtype, std::move(shape)};
  return std::unique_ptr<Decoder>(new ArrayDecoder(std::move(plan), std::move(output)));
}

}  // namespace headrace

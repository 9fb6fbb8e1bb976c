// SPDX-License-Identifier: Apache-2.0
#include "transform/program/boxes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/buffer.h"
#include "base/npy.h"
#include "codec/elements.h"
#include "codec/number_rows.h"
#include "transform/program/applied_geometry.h"

namespace headrace {
namespace {

struct Corners {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  double area() const { return std::max(0.0, x1 - x0) * std::max(0.0, y1 - y0); }
};

Corners corners_of(const double* row, std::string_view format) {
  if (format == "xyxy") return {row[0], row[1], row[2], row[3]};
  if (format == "xywh") return {row[0], row[1], row[0] + row[2], row[1] + row[3]};
  return {row[0] - row[2] / 2, row[1] - row[3] / 2, row[0] + row[2] / 2, row[1] + row[3] / 2};
}

// The upright box around the corners, where they go.
Corners moved(const Corners& box, const Affine& map) {
  Corners out{HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
  for (const Point corner :
       {Point{box.x0, box.y0}, {box.x1, box.y0}, {box.x0, box.y1}, {box.x1, box.y1}}) {
    const Point p = map(corner);
    out = {std::min(out.x0, p.x), std::min(out.y0, p.y), std::max(out.x1, p.x),
           std::max(out.y1, p.y)};
  }
  return out;
}

Corners clipped(const Corners& box, Size size) {
  const auto w = static_cast<double>(size.width);
  const auto h = static_cast<double>(size.height);
  return {std::clamp(box.x0, 0.0, w), std::clamp(box.y0, 0.0, h), std::clamp(box.x1, 0.0, w),
          std::clamp(box.y1, 0.0, h)};
}

// What boxes and points have in common: the rows, the geometry, the way into the slot.
class RowsDecoder : public Decoder {
 public:
  RowsDecoder(RowNames names, bool normalized, const FieldSpec& spec)
      : names_(std::move(names)),
        normalized_(normalized),
        follows_(spec.joint == Joint::kFollows),
        draw_group_(spec.draw_group.value_or(0)),
        stored_(spec.array && !spec.array->is_npy ? spec.array->dtype : std::nullopt),
        output_{DType::kF32, {kVaries, static_cast<int64_t>(names_.width())}} {}

  const TensorSpec& output() const override { return output_; }
  // Rows may be stored one by one: then all values of the field are the input (engine/values.h).
  size_t inputs() const override { return stored_ ? 0 : 1; }

  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    HEADRACE_ASSIGN(const std::vector<double> rows, read(inputs));
    const AppliedGeometry* geometry = nullptr;
    if (follows_) {
      HEADRACE_ASSIGN(geometry, find_geometry(context, context.draws().with(draw_group_)));
    }
    std::vector<float> kept;
    std::vector<double> row(names_.width());
    for (size_t at = 0; at < rows.size(); at += row.size()) {
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(at), row.size(), row.begin());
      if (normalized_) scale(row, *geometry);
      if (move(row, geometry)) kept.insert(kept.end(), row.begin(), row.end());
    }
    const auto n = static_cast<int64_t>(kept.size() / row.size());
    HEADRACE_ASSIGN(const MutableBytes room, out.room({{n, static_cast<int64_t>(row.size())}}));
    if (!kept.empty()) std::memcpy(room.data(), kept.data(), kept.size() * sizeof(float));
    return {};
  }

 protected:
  // Into pixels of the result; false when nothing is left of it.  No geometry: nothing moves.
  virtual bool move(std::vector<double>& row, const AppliedGeometry* geometry) const = 0;

 private:
  // Rows of JSON, of a .npy file, or of arrays as the format has them.
  Result<std::vector<double>> read(std::span<const Bytes> inputs) const {
    std::vector<double> rows;
    if (stored_) {
      for (const Bytes value : inputs) HEADRACE_TRY(append(value, *stored_, rows));
    } else if (is_npy(inputs[0])) {
      HEADRACE_ASSIGN(const NpyArray array, open_npy(inputs[0], inputs[0].size()));
      Buffer elements(array.header.data_bytes());
      HEADRACE_TRY(array.copy(inputs[0], elements.span()));
      HEADRACE_TRY(append(elements.bytes(), array.dtype, rows));
    } else {
      return read_rows(inputs[0], names_);
    }
    if (rows.size() % names_.width() == 0) return rows;
    return corrupt(std::to_string(rows.size()) + " numbers are no rows of " +
                   std::to_string(names_.width()));
  }
  static Status append(Bytes elements, DType dtype, std::vector<double>& rows) {
    const size_t count = elements.size() / size_of(dtype);
    const size_t before = rows.size();
    rows.resize(before + count);
    const auto to = std::as_writable_bytes(std::span(rows).subspan(before));
    return convert_elements(elements, dtype, to, DType::kF64);
  }

  void scale(std::vector<double>& row, const AppliedGeometry& geometry) const {
    for (size_t i = 0; i < names_.lead; ++i)
      row[i] *= i % 2 == 0 ? geometry.source.width : geometry.source.height;
  }

  const RowNames names_;
  const bool normalized_, follows_;
  const uint64_t draw_group_;
  const std::optional<DType> stored_;  // of arrays
  const TensorSpec output_;
};

class BoxesDecoder final : public RowsDecoder {
 public:
  BoxesDecoder(RowNames names, bool normalized, const FieldSpec& spec, std::string format,
               double min_area, double min_visible)
      : RowsDecoder(std::move(names), normalized, spec),
        format_(std::move(format)),
        min_area_(min_area),
        min_visible_(min_visible) {}

 protected:
  bool move(std::vector<double>& row, const AppliedGeometry* geometry) const override {
    Corners box = corners_of(row.data(), format_);
    if (geometry != nullptr) {
      const Corners whole = moved(box, geometry->map);
      box = clipped(whole, geometry->result);
      if (box.area() < min_visible_ * whole.area()) return false;
    }
    row[0] = box.x0;
    row[1] = box.y0;
    row[2] = box.x1;
    row[3] = box.y1;
    return box.area() >= min_area_;
  }

 private:
  const std::string format_;
  const double min_area_, min_visible_;
};

class PointsDecoder final : public RowsDecoder {
 public:
  using RowsDecoder::RowsDecoder;

 protected:
  bool move(std::vector<double>& row, const AppliedGeometry* geometry) const override {
    if (geometry == nullptr) return true;
    const Point p = geometry->map({row[0], row[1]});
    row[0] = p.x;
    row[1] = p.y;
    return true;
  }
};

std::vector<std::string> split_names(const std::string& names) {
  std::vector<std::string> out;
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(',', at), names.size());
    out.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Status check_normalized(bool normalized, const FieldSpec& spec) {
  if (!normalized || spec.joint == Joint::kFollows) return {};
  return invalid("normalized coordinates need the picture: join them, hr.joint(image=…, " +
                 spec.name + "=…)");
}

// Arrays are rows of that many numbers, or one long list of them.
Status check_rows(const FieldSpec& spec, size_t width) {
  if (!spec.array || spec.array->is_npy || spec.array->shape.size() < 2) return {};
  const int64_t last = spec.array->shape.back();
  if (last == kVaries || last == static_cast<int64_t>(width)) return {};
  return invalid("rows of " + std::to_string(last) + " numbers, where " + std::to_string(width) +
                 " are wanted; extra=(…) names those after the first");
}

}  // namespace

Result<std::unique_ptr<Decoder>> make_boxes_decoder(const FieldSpec& spec) {
  Params options = spec.options;
  RowNames names{options.take_text("key", "bbox"), split_names(options.take_text("extra", "")), 4};
  const std::string format = options.take_text("format", "xyxy");
  const bool normalized = options.take_flag("normalized", false);
  const double min_area = options.take_number("min_area", 1);
  const double min_visible = options.take_number("min_visible", 0);
  HEADRACE_TRY(options.done());
  if (format != "xyxy" && format != "xywh" && format != "cxcywh")
    return invalid("no format '" + format + "'; there are xyxy, xywh, cxcywh");
  if (!(min_area >= 0)) return invalid("parameter 'min_area' must not be negative");
  if (!(min_visible >= 0 && min_visible <= 1))
    return invalid("parameter 'min_visible' must be in [0, 1]");
  HEADRACE_TRY(check_normalized(normalized, spec));
  HEADRACE_TRY(check_rows(spec, names.width()));
  return std::unique_ptr<Decoder>(std::make_unique<BoxesDecoder>(std::move(names), normalized, spec,
                                                                 format, min_area, min_visible));
}

Result<std::unique_ptr<Decoder>> make_points_decoder(const FieldSpec& spec) {
  Params options = spec.options;
  RowNames names{options.take_text("key", "keypoints"), split_names(options.take_text("extra", "")),
                 2};
  const bool normalized = options.take_flag("normalized", false);
  HEADRACE_TRY(options.done());
  HEADRACE_TRY(check_normalized(normalized, spec));
  HEADRACE_TRY(check_rows(spec, names.width()));
  return std::unique_ptr<Decoder>(
      std::make_unique<PointsDecoder>(std::move(names), normalized, spec));
}

}  // namespace headrace

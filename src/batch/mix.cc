// SPDX-License-Identifier: Apache-2.0
#include "batch/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/half.h"

namespace headrace {
namespace {

double draw_normal(Rng& rng) {
  const double u = 1 - rng.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * rng.uniform());
}

// The logarithm of a draw from Gamma(a): Marsaglia and Tsang's method, for a < 1 by way of a + 1.
// The logarithm, because draws at small a underflow.
double draw_log_gamma(double a, Rng& rng) {
  if (a < 1) return draw_log_gamma(a + 1, rng) + std::log(1 - rng.uniform()) / a;
  const double d = a - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw_normal(rng);
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(1 - rng.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v))
      return std::log(d * v);
  }
}

// What one sample of a column takes, and where sample i lies.
struct Rows {
  std::byte* data;
  size_t stride;
  size_t count;
  std::byte* at(size_t i) const { return data + i * stride; }
};

Rows rows_of(const Column& column) {
  const auto n = static_cast<size_t>(column.shape[0]);
  return {column.values->data(), column.values->size() / std::max<size_t>(1, n), n};
}

template <typename T, typename From, typename To>
void blend(std::byte* into, const std::byte* other, size_t bytes, float share, From from, To to) {
  for (size_t i = 0; i < bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, into + i, sizeof(T));
    std::memcpy(&b, other + i, sizeof(T));
    a = to(from(a) * share + from(b) * (1 - share));
    std::memcpy(into + i, &a, sizeof(T));
  }
}

void blend(DType dtype, std::byte* into, const std::byte* other, size_t bytes, float share) {
  const auto same = [](float v) { return v; };
  if (dtype == DType::kF32)
    blend<float>(into, other, bytes, share, same, same);
  else if (dtype == DType::kF16)
    blend<uint16_t>(into, other, bytes, share, from_f16, to_f16);
  else
    blend<uint16_t>(into, other, bytes, share, from_bf16, to_bf16);
}

// Calls work(sample, the one before it), each seeing the one before as it was.
template <typename Work>
void for_pairs(const Rows& rows, Work work) {
  if (rows.count < 2) return;
  Buffer last(rows.stride);
  std::memcpy(last.data(), rows.at(rows.count - 1), rows.stride);
  for (size_t i = rows.count - 1; i > 0; --i) work(rows.at(i), rows.at(i - 1));
  work(rows.at(0), last.data());
}

struct Cut {
  int64_t y0, y1, x0, x1;
};

// As torchvision draws it: a centre anywhere, the box clipped, λ from what is left of it.
Cut draw_cut(int64_t height, int64_t width, double& share, Rng& rng) {
  const auto x = static_cast<int64_t>(rng.below(static_cast<uint64_t>(width)));
  const auto y = static_cast<int64_t>(rng.below(static_cast<uint64_t>(height)));
  const double r = 0.5 * std::sqrt(1 - share);
  const auto half_w = static_cast<int64_t>(r * static_cast<double>(width));
  const auto half_h = static_cast<int64_t>(r * static_cast<double>(height));
  const Cut cut{std::max<int64_t>(y - half_h, 0), std::min(y + half_h, height),
                std::max<int64_t>(x - half_w, 0), std::min(x + half_w, width)};
  share = 1 - static_cast<double>((cut.x1 - cut.x0) * (cut.y1 - cut.y0)) /
                  static_cast<double>(width * height);
  return cut;
}

class Mix final : public BatchStage {
 public:
  Mix(MixOptions options, size_t image, size_t label, const TensorSpec& picture)
      : options_(std::move(options)),
        image_(image),
        label_(label),
        height_(picture.shape[options_.channels_last ? 0 : 1]),
        width_(picture.shape[options_.channels_last ? 1 : 2]) {}

  Status apply(Batch& batch, Key draws, BufferPool& pool) const override {
    Rng rng(draws);
    const MixKind& kind = options_.kinds[rng.below(options_.kinds.size())];
    double share = 1;
    if (rng.uniform() < kind.p) {
      share = draw_beta(kind.alpha, rng);
      Column& pictures = batch.columns[image_];
      if (kind.name != "mixup") {
        const Cut box = draw_cut(height_, width_, share, rng);
        if (options_.pictures_later)
          pictures.late_mix = LateMix{true, 1, box.y0, box.y1, box.x0, box.x1};
        else
          cut(pictures, box);
      } else if (options_.pictures_later) {
        pictures.late_mix = LateMix{.share = static_cast<float>(share)};
      } else {
        mix(pictures, share);
      }
    }
    return mix_labels(batch, share, pool);
  }

 private:
  static void mix(const Column& column, double share) {
    const Rows rows = rows_of(column);
    for_pairs(rows, [&](std::byte* into, const std::byte* other) {
      blend(column.dtype, into, other, rows.stride, static_cast<float>(share));
    });
  }

  void cut(const Column& column, const Cut& box) const {
    const Rows rows = rows_of(column);
    const bool last = options_.channels_last;
    const auto planes = static_cast<size_t>(last ? 1 : column.shape[1]);
    const size_t pixel = size_of(column.dtype) * static_cast<size_t>(last ? column.shape[3] : 1);
    const auto bytes = static_cast<size_t>(box.x1 - box.x0) * pixel;
    for_pairs(rows, [&](std::byte* into, const std::byte* other) {
      for (size_t c = 0; c < planes; ++c)
        for (int64_t y = box.y0; y < box.y1; ++y) {
          const size_t at = ((c * static_cast<size_t>(height_) + static_cast<size_t>(y)) *
                                 static_cast<size_t>(width_) +
                             static_cast<size_t>(box.x0)) *
                            pixel;
          std::memcpy(into + at, other + at, bytes);
        }
    });
  }

  Status mix_labels(Batch& batch, double share, BufferPool& pool) const {
    Column& column = batch.columns[label_];
    const auto n = static_cast<size_t>(column.shape[0]);
    const auto classes = static_cast<size_t>(options_.classes);
    std::vector<int64_t> labels(n);
    if (n > 0) std::memcpy(labels.data(), column.values->data(), n * sizeof(int64_t));
    for (size_t i = 0; i < n; ++i)  // all of them first: each is used for two rows
      if (labels[i] < 0 || labels[i] >= options_.classes)
        return corrupt(
            fmt::format("field '{}': the label {} of sample {} is not in 0 to {}, the {} "
                        "classes given to {}",
                        options_.label, labels[i], batch.indices[i], options_.classes - 1,
                        options_.classes, options_.kinds[0].name));
    Column out;
    out.dtype = DType::kF32;
    out.shape = {static_cast<int64_t>(n), options_.classes};
    out.values = pool.take(n * classes * sizeof(float));
    std::vector<float> row(classes);
    for (size_t i = 0; i < n; ++i) {
      std::fill(row.begin(), row.end(), 0.0f);
      row[static_cast<size_t>(labels[i])] += static_cast<float>(share);
      row[static_cast<size_t>(labels[i == 0 ? n - 1 : i - 1])] += static_cast<float>(1 - share);
      std::memcpy(out.values->data() + i * classes * sizeof(float), row.data(),
                  classes * sizeof(float));
    }
    column = std::move(out);
    return {};
  }

  const MixOptions options_;
  const size_t image_, label_;
  const int64_t height_, width_;
};

Result<size_t> column_named(const std::string& name, std::span<const ColumnSpec> columns) {
  for (size_t c = 0; c < columns.size(); ++c)
    if (columns[c].name == name) return c;
  return invalid(fmt::format("mix: there is no field '{}' among the outputs", name));
}

}  // namespace

double draw_beta(double a, Rng& rng) {
  const double x = draw_log_gamma(a, rng);
  const double y = draw_log_gamma(a, rng);
  return 1 / (1 + std::exp(y - x));
}

Result<std::unique_ptr<BatchStage>> make_mix(const MixOptions& options,
                                             std::span<const ColumnSpec> columns) {
  if (options.kinds.empty()) return invalid("mix: neither mixup nor cutmix is given");
  HEADRACE_ASSIGN(const size_t image, column_named(options.image, columns));
  HEADRACE_ASSIGN(const size_t label, column_named(options.label, columns));
  const ColumnSpec& pictures = columns[image];
  const ColumnSpec& labels = columns[label];
  if (pictures.packing != Packing::kDense || pictures.value.shape.size() != 3)
    return invalid(fmt::format("mix: field '{}' gives {}; pictures of one size are wanted",
                               options.image, pictures.value.text()));
  if (labels.packing != Packing::kDense || labels.value != TensorSpec{DType::kI64, {}})
    return invalid(fmt::format("mix: field '{}' gives {}; one whole number (i64) is wanted",
                               options.label, labels.value.text()));
  if (options.classes < 1 || options.classes > 1 << 24)
    return invalid("mix: 'classes' is how many classes there are, at least 1");
  for (const MixKind& kind : options.kinds) {
    const DType d = pictures.value.dtype;
    const bool floats = d == DType::kF32 || d == DType::kF16 || d == DType::kBF16;
    if (kind.name == "mixup" && !floats)
      return invalid(
          fmt::format("mix: mixup blends floats and field '{}' gives {}; add "
                      ".normalize(…) or .cast(\"f32\")",
                      options.image, pictures.value.text()));
    if (!(kind.alpha > 0 && std::isfinite(kind.alpha)))
      return invalid(fmt::format("mix: {}: 'alpha' must be above 0", kind.name));
    if (!(kind.p >= 0 && kind.p <= 1))
      return invalid(fmt::format("mix: {}: 'p' must be in [0, 1]", kind.name));
  }
  return std::unique_ptr<BatchStage>(std::make_unique<Mix>(options, image, label, pictures.value));
}

}  // namespace headrace

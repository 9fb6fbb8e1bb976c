// SPDX-License-Identifier: Apache-2.0
#include "transform/program/deferred_decoder.h"

#include <cstring>
#include <utility>

#include "transform/program/applied_geometry.h"
#include "transform/program/image_run.h"

namespace headrace {
namespace {

// The record names them by number.
static_assert(static_cast<int>(Filter::kNearest) == 0 && static_cast<int>(Filter::kBilinear) == 1 &&
              static_cast<int>(Filter::kBicubic) == 2 && static_cast<int>(Filter::kLanczos) == 3);
static_assert(static_cast<int>(Border::kConstant) == 0 && static_cast<int>(Border::kEdge) == 1 &&
              static_cast<int>(Border::kReflect) == 2 && static_cast<int>(Border::kSymmetric) == 3);

// Immutable, hence thread-safe.
class DeferredDecoder final : public Decoder {
 public:
  explicit DeferredDecoder(Program program) : program_(std::move(program)) {
    const PixelOutput& store = program_.store;
    spec_ = {.result = program_.value,
             .mode = program_.mode,
             .channels_first = store.layout == Layout::kNCHW,
             .scale = store.scale,
             .bias = store.bias,
             .is_scaled = store.dtype != DType::kU8};
  }
  const TensorSpec& output() const override { return output_; }
  const DeferredSpec* deferred() const override { return &spec_; }
  bool is_light() const override { return true; }

  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    const Bytes stored = inputs[0];
    HEADRACE_ASSIGN(const ImageCodec* codec, find_image_codec(stored));
    HEADRACE_ASSIGN(const ImageInfo info, codec->probe(stored));
    HEADRACE_TRY(check_size(codec->name, info, program_.limits));
    const Size source{info.width, info.height};
    const Key own = context.draws().with(program_.draw_group);
    HEADRACE_ASSIGN(const View view, view_of_steps(program_, own, source));
    if (program_.joint == Joint::kFollows) HEADRACE_TRY(check_joint(context, own, source));
    const DeferredPicture record = record_of(source, view);
    const auto bytes = static_cast<int64_t>(sizeof record + stored.size());
    HEADRACE_ASSIGN(const MutableBytes room, out.room({&bytes, 1}));
    std::memcpy(room.data(), &record, sizeof record);
    std::memcpy(room.data() + sizeof record, stored.data(), stored.size());
    if (program_.joint == Joint::kLeads)
      context.part<AppliedGeometry>() = {own, source, view.result(), affine_of(view), true};
    return {};
  }

 private:
  const Program program_;
  DeferredSpec spec_;
  const TensorSpec output_{DType::kU8, {kVaries}};
};

// Steps that resample twice take two passes whatever the picture is.
Status check_passes(const Program& program) {
  Size size{641, 479};
  std::string first;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const NamedStep& step = program.steps[i];
    const std::string name = "step " + std::to_string(i + 1) + " " + step.name;
    if (step.geometric() == nullptr)
      return invalid(name + ": it changes pixels, and with defer=true there are none yet; crop, " +
                     "resize, flip and pad may come, then normalize, cast and layout");
    if (!step.geometric()->check_size(size).ok()) return {};  // the data may be of another size
    const View view = step.geometric()->view(size, Rng(Key(0).with(i)));
    if (view.resamples() && !first.empty())
      return invalid(name + ": defer=true takes one step that resamples, and " + first +
                     " is one; leave one of them out");
    if (view.resamples()) first = step.name;
    size = view.result();
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Decoder>> make_deferred_decoder(Program program) {
  const auto refuse = [](const char* what) {
    return invalid(std::string(what) + " and defer=true do not go together");
  };
  if (program.fast) return refuse("fast=true");
  if (program.limits.orient) return refuse("orient=true");
  if (program.raw) return refuse("pictures that lie as elements");
  if (program.channels_first) return refuse("layout=\"CHW\"");
  if (program.views > 1) return refuse("views");
  HEADRACE_TRY(check_passes(program));
  return std::unique_ptr<Decoder>(std::make_unique<DeferredDecoder>(std::move(program)));
}

DeferredPicture record_of(Size source, const View& view) {
  return {.source_width = source.width,
          .source_height = source.height,
          .box_x = view.box.x,
          .box_y = view.box.y,
          .box_width = view.box.width,
          .box_height = view.box.height,
          .width = view.size.width,
          .height = view.size.height,
          .window_x = view.window.x,
          .window_y = view.window.y,
          .window_width = view.window.width,
          .window_height = view.window.height,
          .filter = static_cast<uint8_t>(view.filter),
          .flip = view.flip,
          .flip_down = view.flip_down,
          .border = static_cast<uint8_t>(view.padding.border),
          .fill = view.padding.fill};
}

View view_of(const DeferredPicture& record) {
  return {.box = {record.box_x, record.box_y, record.box_width, record.box_height},
          .size = {record.width, record.height},
          .filter = static_cast<Filter>(record.filter),
          .window = {record.window_x, record.window_y, record.window_width, record.window_height},
          .flip = record.flip != 0,
          .flip_down = record.flip_down != 0,
          .padding = {static_cast<Border>(record.border), record.fill}};
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "transform/program/deferred_decoder.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "transform/kernels/resample.h"
#include "transform/program/applied_geometry.h"
#include "transform/program/image_run.h"

namespace headrace {
namespace {

// The record names them by number.
static_assert(static_cast<int>(Filter::kNearest) == 0 && static_cast<int>(Filter::kBilinear) == 1 &&
              static_cast<int>(Filter::kBicubic) == 2 && static_cast<int>(Filter::kLanczos) == 3);
static_assert(static_cast<int>(Border::kConstant) == 0 && static_cast<int>(Border::kEdge) == 1 &&
              static_cast<int>(Border::kReflect) == 2 && static_cast<int>(Border::kSymmetric) == 3);

constexpr int kLeastSide = 16;

// Immutable but for counters, hence thread-safe.
class DeferredDecoder final : public Decoder {
 public:
  explicit DeferredDecoder(Program program) : program_(std::move(program)) {
    const PixelOutput& store = program_.store;
    spec_ = {.result = program_.value,
             .mode = program_.mode,
             .channels_first = store.layout == Layout::kNCHW,
             .scale = store.scale,
             .bias = store.bias,
             .is_scaled = store.dtype != DType::kU8,
             .limits = program_.limits,
             .share = program_.decode_share};
  }
  const TensorSpec& output() const override { return output_; }
  const DeferredSpec* deferred() const override { return &spec_; }
  bool is_light() const override { return true; }

  uint64_t damaged() const override { return damaged_; }

  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    const Bytes stored = inputs[0];
    JpegLayout layout;
    HEADRACE_ASSIGN(const Size source, look_at(stored, layout));
    const Key own = context.draws().with(program_.draw_group);
    HEADRACE_ASSIGN(const View view, view_of_steps(program_, own, source));
    if (program_.joint == Joint::kFollows) HEADRACE_TRY(check_joint(context, own, source));
    DeferredPicture record = record_of(source, view);
    if (!choose(layout, view, record)) {
      HEADRACE_TRY(render(record, stored, out));
    } else {
      HEADRACE_ASSIGN(const MutableBytes room, room_for(record, stored.size(), out));
      std::memcpy(room.data(), stored.data(), stored.size());
    }
    if (program_.joint == Joint::kLeads)
      context.part<AppliedGeometry>() = {own, source, view.result(), affine_of(view), true};
    return {};
  }

 private:
  // How large the picture is; where its segments tell, without libjpeg.
  Result<Size> look_at(Bytes stored, JpegLayout& layout) const {
    ImageInfo info;
    if (read_jpeg_layout(stored, layout) && layout.is_plain) {
      info = {layout.width, layout.height, 3, false};
      HEADRACE_TRY(check_size("JPEG", info, program_.limits));
    } else {
      layout.is_plain = false;
      HEADRACE_ASSIGN(const ImageCodec* codec, find_image_codec(stored));
      HEADRACE_ASSIGN(info, codec->probe(stored));
      HEADRACE_TRY(check_size(codec->name, info, program_.limits));
    }
    return Size{info.width, info.height};
  }
  // Whether the stored bytes are left to the stage; then `record` says what they are.
  bool choose(const JpegLayout& layout, const View& view, DeferredPicture& record) const {
    if (spec_.share == nullptr) return true;
    // The device's filters are those without sines; libjpeg upsamples tiny pictures another way.
    const bool takes = layout.is_plain && layout.width >= kLeastSide &&
                       layout.height >= kLeastSide && view.filter != Filter::kLanczos;
    record.sampling = static_cast<uint8_t>(layout.sampling);
    if (takes && spec_.share->leave_to_device(layout.sampling)) return true;
    spec_.share->count_on_cpu();
    return false;
  }
  // The record, and so many bytes behind it.
  static Result<MutableBytes> room_for(const DeferredPicture& record, size_t n, Slot& out) {
    const auto bytes = static_cast<int64_t>(sizeof record + n);
    HEADRACE_ASSIGN(const MutableBytes room, out.room({&bytes, 1}));
    std::memcpy(room.data(), &record, sizeof record);
    return room.subspan(sizeof record);
  }
  Status render(DeferredPicture record, Bytes stored, Slot& out) const {
    record.is_rendered = 1;
    const size_t bytes = static_cast<size_t>(record.window_width) *
                         static_cast<size_t>(record.window_height) *
                         static_cast<size_t>(channels_of(program_.mode));
    HEADRACE_ASSIGN(const MutableBytes room, room_for(record, bytes, out));
    ImageOptions options = program_.limits;
    options.damaged = &damaged_;
    return render_deferred({record, stored}, program_.mode, options, room);
  }

  const Program program_;
  mutable std::atomic<uint64_t> damaged_{0};
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

Status check_deferrable(const Program& program) {
  const auto refuse = [](const char* what) {
    return invalid(std::string(what) + " and defer=true do not go together");
  };
  if (program.fast) return refuse("fast=true");
  if (program.limits.orient) return refuse("orient=true");
  if (program.raw) return refuse("pictures that lie as elements");
  if (program.channels_first) return refuse("layout=\"CHW\"");
  if (program.views > 1) return refuse("variants");
  return check_passes(program);
}

Result<std::unique_ptr<Decoder>> make_deferred_decoder(Program program) {
  HEADRACE_TRY(check_deferrable(program));
  return std::unique_ptr<Decoder>(std::make_unique<DeferredDecoder>(std::move(program)));
}

Status render_deferred(const DeferredValue& value, PixelMode mode, const ImageOptions& options,
                       MutableBytes out) {
  // A codec's rows, through the resampler, into `out`.
  class Render final : public ImageSink {
   public:
    Render(const View& view, PixelMode pixels, MutableBytes to)
        : view_(view), mode_(pixels), out_(to) {}
    Result<ImageRequest> begin(const ImageInfo&) override {
      const Box region = resampler().begin(view_, 1, channels_of(mode_),
                                           PixelOutput{.layout = Layout::kNHWC}, out_);
      return ImageRequest{region, mode_, 1};
    }
    Status rows(const Rows& rows) override {
      resampler().rows(rows);
      return {};
    }

   private:
    static Resampler& resampler() {
      static thread_local Resampler one;
      return one;
    }
    const View view_;
    const PixelMode mode_;
    const MutableBytes out_;
  } sink(view_of(value.picture), mode, out);
  bool tolerable = false;
  ImageOptions asked = options;
  asked.tolerable = &tolerable;
  const Status status = decode_image(value.stored, asked, sink);
  return tolerable ? with_remedy(status) : status;
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

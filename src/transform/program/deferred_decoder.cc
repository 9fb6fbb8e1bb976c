// SPDX-License-Identifier: Apache-2.0
#include "transform/program/deferred_decoder.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "base/guard.h"
#include "codec/exif.h"
#include "trace/clock.h"
#include "transform/colour/colour.h"
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

// Of pictures that are left to a chip.  libjpeg upsamples tiny ones another way; above the most
// are panoramas, which the CPU makes without their whole planes.
constexpr int kLeastSide = 16;
constexpr int kMostSide = 16384;
constexpr size_t kMostChanges = 255;  // the record counts them in a byte
// nvJPEG reads past the end of a picture (seen with memory that the device copies from by itself).
constexpr uint16_t kSlack = 256;

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
  uint64_t damaged() const override { return damaged_; }

  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    Picture picture;
    HEADRACE_TRY(look_at(inputs[0], picture));
    const Key own = context.draws().with(program_.draw_group);
    HEADRACE_ASSIGN(const View view,
                    view_of_steps(program_, own, picture.size, picture.value.changes));
    if (program_.joint == Joint::kFollows) HEADRACE_TRY(check_joint(context, own, picture.size));
    fill_record(view, picture);
    if (!is_left(context, view, picture))
      HEADRACE_TRY(render(picture.value, out));
    else
      HEADRACE_TRY(leave(picture.value, out));
    if (program_.joint == Joint::kLeads)
      context.part<AppliedGeometry>() = {own, picture.size, view.result(), affine_of(view), true};
    return {};
  }

 private:
  struct Picture {
    JpegLayout layout;
    Size stored;  // as the header says
    Size size;    // turned
    Orientation orientation;
    DeferredValue value;
  };
  // How large the picture is; where its segments tell, without libjpeg.
  Status look_at(Bytes stored, Picture& out) const {
    out.value.stored = stored;
    if (read_jpeg_layout(stored, out.layout) && out.layout.is_plain) {
      out.stored = out.size = {out.layout.width, out.layout.height};
      if (program_.limits.orient) out.orientation = exif_orientation(exif_of_jpeg(stored));
      if (out.orientation.transpose) out.size = {out.stored.height, out.stored.width};
      return check_size("JPEG", {out.size.width, out.size.height, 3, false}, program_.limits);
    }
    out.layout.is_plain = false;
    HEADRACE_ASSIGN(const ImageCodec* codec, find_image_codec(stored));
    HEADRACE_ASSIGN(const ImageInfo info, codec->probe(stored));
    HEADRACE_TRY(check_size(codec->name, info, program_.limits));
    out.stored = out.size = {info.width, info.height};
    if (program_.limits.orient) HEADRACE_TRY(size_when_turned(stored, out.size));
    return {};
  }
  // As whoever takes its pixels is told, whichever codec turns it.
  Status size_when_turned(Bytes stored, Size& out) const {
    class Stop final : public ImageSink {
     public:
      explicit Stop(Size& to) : size_(to) {}
      Result<ImageRequest> begin(const ImageInfo& info) override {
        size_ = {info.width, info.height};
        is_told = true;
        return cancelled("only the size is wanted");
      }
      Status rows(const Rows&) override { return {}; }
      bool is_told = false;

     private:
      Size& size_;
    } sink(out);
    const Status status = decode_image(stored, program_.limits, sink);
    return sink.is_told ? Status() : status;
  }
  static void fill_record(const View& view, Picture& picture) {
    DeferredPicture& record = picture.value.picture;
    record = record_of(picture.stored, view);
    record.sampling = static_cast<uint8_t>(picture.layout.sampling);
    record.orientation = static_cast<uint8_t>((picture.orientation.mirror_x ? 1 : 0) |
                                              (picture.orientation.mirror_y ? 2 : 0) |
                                              (picture.orientation.transpose ? 4 : 0));
  }
  // Whether the stored bytes are left to the stage.
  bool is_left(const SampleContext& context, const View& view, const Picture& picture) const {
    if (spec_.share == nullptr) return true;
    const auto fits = [](int side) { return side >= kLeastSide && side <= kMostSide; };
    // The device's filters are those without sines.
    return !context.stays_on_cpu() && picture.layout.is_plain && fits(picture.stored.width) &&
           fits(picture.stored.height) && view.filter != Filter::kLanczos &&
           picture.value.changes.size() <= kMostChanges &&
           spec_.share->leave_to_device(picture.layout.sampling);
  }
  // The record, the changes, room for so many bytes, and `record.slack` zeros.
  static Result<MutableBytes> room_for(const DeferredPicture& record,
                                       const std::vector<PixelChange>& changes, size_t n,
                                       Slot& out) {
    const size_t told = changes.size() * sizeof(PixelChange);
    const auto bytes = static_cast<int64_t>(sizeof record + told + n + record.slack);
    HEADRACE_ASSIGN(const MutableBytes room, out.room({&bytes, 1}));
    std::memcpy(room.data(), &record, sizeof record);
    if (told > 0) std::memcpy(room.data() + sizeof record, changes.data(), told);
    const MutableBytes rest = room.subspan(sizeof record + told);
    std::memset(rest.data() + n, 0, record.slack);
    return rest.first(n);
  }
  Status leave(DeferredValue& value, Slot& out) const {
    value.picture.changes = static_cast<uint8_t>(value.changes.size());
    value.picture.slack = spec_.share == nullptr ? uint16_t{0} : kSlack;
    HEADRACE_ASSIGN(const MutableBytes room,
                    room_for(value.picture, value.changes, value.stored.size(), out));
    std::memcpy(room.data(), value.stored.data(), value.stored.size());
    return {};
  }
  Status render(DeferredValue& value, Slot& out) const {
    const uint64_t begin = steady_ns();
    value.picture.is_rendered = 1;
    const size_t bytes = static_cast<size_t>(value.picture.window_width) *
                         static_cast<size_t>(value.picture.window_height) *
                         static_cast<size_t>(channels_of(program_.mode));
    HEADRACE_ASSIGN(const MutableBytes room, room_for(value.picture, {}, bytes, out));
    ImageOptions options = program_.limits;
    options.damaged = &damaged_;
    spec_.share->begins_on_cpu();
    const Status status =
        guard([&] { return render_deferred(value, program_.mode, options, room); });
    if (status.ok())
      spec_.share->decoded_on_cpu(steady_ns() - begin);
    else
      spec_.share->failed_on_cpu();
    return status;
  }

  const Program program_;
  mutable std::atomic<uint64_t> damaged_{0};
  DeferredSpec spec_;
  const TensorSpec output_{DType::kU8, {kVaries}};
};

Status check_step(const NamedStep& step, const std::string& name, const Program& program,
                  bool& changed) {
  const bool on_device = program.decode_share != nullptr;
  const char* known =
      on_device ? "crop, resize, flip and pad may come, then color_jitter, random_grayscale, "
                  "random_erasing and flips, then normalize, cast and layout"
                : "crop, resize, flip and pad may come, then normalize, cast and layout";
  if (step.geometric() == nullptr) {
    changed = on_device && step.pixels() != nullptr && step.pixels()->has_changes();
    if (changed) return {};
    return invalid(
        name + ": it changes pixels, and " +
        (on_device ? "the device does not know how; " : "with defer=true there are none yet; ") +
        known);
  }
  if (changed && !step.geometric()->only_flips())
    return invalid(name + ": after a change of pixels the device only flips; move it before that");
  return {};
}

// Steps that resample twice take two passes whatever the picture is.
Status check_passes(const Program& program) {
  Size size{641, 479};
  std::string first;
  bool changed = false;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const NamedStep& step = program.steps[i];
    const std::string name = "step " + std::to_string(i + 1) + " " + step.name;
    HEADRACE_TRY(check_step(step, name, program, changed));
    if (changed) continue;
    if (!step.geometric()->check_size(size).ok()) continue;  // the data may be of another size
    const View view = step.geometric()->view(size, Rng(Key(0).with(i)));
    if (view.resamples() && !first.empty())
      return invalid(name + ": one step may resample" +
                     (program.decode_share != nullptr ? " on the device" : " with defer=true") +
                     ", and " + first + " is one; leave one of them out");
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
  if (program.limits.orient && program.decode_share == nullptr) return refuse("orient=true");
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
  if (!status.ok()) return tolerable ? with_remedy(status) : status;
  const Pixels pixels{reinterpret_cast<uint8_t*>(out.data()),
                      {value.picture.window_width, value.picture.window_height},
                      channels_of(mode)};
  for (const PixelChange& change : value.changes) apply_change(pixels, change);
  return {};
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

// SPDX-License-Identifier: Apache-2.0
//
// One picture, one result or several: where one decode serves several results, the part of the
// picture that they need together is decoded into memory first.
#include "transform/program/image_decoder.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/npy.h"
#include "codec/raw_picture.h"
#include "transform/program/applied_geometry.h"
#include "transform/program/deferred_decoder.h"
#include "transform/program/image_run.h"

namespace headrace {
namespace {

constexpr int kMostViews = 64;

Box around(const Box& a, const Box& b) {
  const int x = std::min(a.x, b.x);
  const int y = std::min(a.y, b.y);
  return {x, y, std::max(a.x + a.width, b.x + b.width) - x,
          std::max(a.y + a.height, b.y + b.height) - y};
}

// The i-th part of a slot that holds several results.
class PartOfSlot final : public Slot {
 public:
  PartOfSlot(MutableBytes all, uint64_t bytes, int i)
      : part_(all.subspan(static_cast<size_t>(bytes) * static_cast<size_t>(i),
                          static_cast<size_t>(bytes))) {}
  Result<MutableBytes> room(std::span<const int64_t>) override { return part_; }

 private:
  const MutableBytes part_;
};

// Immutable but for a counter, hence thread-safe.
class ImageDecoder final : public Decoder {
 public:
  explicit ImageDecoder(Program program) : program_(std::move(program)) {}
  const TensorSpec& output() const override { return program_.output; }
  const DeferredSpec* deferred() const override { return late_ ? &*late_ : nullptr; }
  // Leaves scaling, casting and layout to a later stage: the values are pixels.
  void leave_rest() {
    const PixelOutput& store = program_.store;
    late_ = DeferredSpec{.result = program_.value,
                         .mode = program_.mode,
                         .channels_first = store.layout == Layout::kNCHW,
                         .scale = store.scale,
                         .bias = store.bias,
                         .is_scaled = store.dtype != DType::kU8,
                         .has_pixels = true};
    const auto& shape = program_.value.shape;
    const bool planar = store.layout == Layout::kNCHW;
    const Size size{static_cast<int>(shape[planar ? 2 : 1]),
                    static_cast<int>(shape[planar ? 1 : 0])};
    program_.store = PixelOutput{.layout = Layout::kNHWC};
    program_.value = {DType::kU8, program_.store.shape(size, channels_of(program_.mode))};
    program_.output = program_.value;
  }

  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    const Bytes value = inputs[0];
    if (program_.views > 1) return run_views(value, context, out);
    const Key own = context.draws().with(program_.draw_group);
    ImageRun run(program_, own, out);
    if (program_.share != 0) {
      HEADRACE_ASSIGN(const SharedPicture* picture, decoded(value, context));
      HEADRACE_TRY(run.take(*picture));
    } else {
      HEADRACE_TRY(decode(value, run));
    }
    HEADRACE_TRY(run.finish());
    if (program_.joint == Joint::kLeads)
      context.part<AppliedGeometry>() = {own, run.source(), run.result(), run.map(), true};
    return program_.joint == Joint::kFollows ? check_joint(context, own, run.source()) : Status();
  }
  uint64_t damaged() const override { return damaged_; }

 private:
  ImageOptions options() const {
    ImageOptions out = program_.limits;
    out.damaged = &damaged_;
    return out;
  }
  Status decode(Bytes value, ImageSink& sink) const {
    ImageOptions options = this->options();
    bool tolerable = false;
    options.tolerable = &tolerable;
    const Status status = decode(value, options, sink);
    return tolerable ? with_remedy(status) : status;
  }
  Status decode(Bytes value, const ImageOptions& options, ImageSink& sink) const {
    if (program_.raw) {
      HEADRACE_ASSIGN(const std::vector<int64_t> shape, fit_shape(*program_.raw, value.size()));
      return decode_raw(shape, program_.channels_first, value, options, sink);
    }
    if (program_.channels_first && is_npy(value))
      return decode_npy_picture(value, true, options, sink);
    return decode_image(value, options, sink);
  }
  Key view_key(Key draws, int view) const {
    return draws.with(program_.draw_group).with("view").with(static_cast<uint64_t>(view));
  }

  // The picture, as far as the views need it, or whole where other fields take from it too.
  Result<const SharedPicture*> decoded(Bytes value, SampleContext& context) const {
    auto& picture = context.part<SharedPicture>();
    const Key draws = context.draws();
    const SharedPicture::Name name{program_.share,        draws,         value.data(),
                                   value.size(),          program_.mode, program_.limits.strict,
                                   program_.limits.orient};
    if (picture.holds(name)) return &picture;
    const auto give = [&](ImageSink& sink) { return decode(value, sink); };
    HEADRACE_TRY(picture.decode(name, give, [&](Size size) {
      return program_.share != 0 ? Box{0, 0, size.width, size.height} : boxes_of_views(size, draws);
    }));
    return &picture;
  }

  Box boxes_of_views(Size size, Key draws) const {
    PartOfSlot nowhere({}, 0, 0);
    Box all = ImageRun(program_, view_key(draws, 0), nowhere).first_box(size);
    for (int v = 1; v < program_.views; ++v)
      all = around(all, ImageRun(program_, view_key(draws, v), nowhere).first_box(size));
    return all;
  }

  Status run_views(Bytes value, SampleContext& context, Slot& out) const {
    HEADRACE_ASSIGN(const SharedPicture* picture, decoded(value, context));
    HEADRACE_ASSIGN(const MutableBytes all, out.room(program_.output.shape));
    if (all.size() < program_.output.bytes()) return internal("the slot is smaller than its shape");
    for (int v = 0; v < program_.views; ++v) {
      PartOfSlot part(all, program_.value.bytes(), v);
      ImageRun run(program_, view_key(context.draws(), v), part);
      HEADRACE_TRY(run.take(*picture));
      HEADRACE_TRY(run.finish());
    }
    return {};
  }

  Program program_;  // not changed once it runs
  std::optional<DeferredSpec> late_;
  mutable std::atomic<uint64_t> damaged_{0};
};

// With a device behind the batch: pictures are left to its decoder, or pixels to its kernels; null
// where neither goes.  `program` is taken where something is returned.
std::unique_ptr<Decoder> make_late(const FieldSpec& spec, Program& program) {
  const int channels = channels_of(program.mode);
  LateWork& late = *spec.late;
  if (channels != 1 && channels != 3) {
    late.why_on_cpu = "the device makes pictures of one or three channels";
    return nullptr;
  }
  if (late.share != nullptr) {
    program.decode_share = late.share;
    const Status status = check_deferrable(program);
    if (status.ok()) {
      auto made = make_deferred_decoder(std::move(program));
      return made.ok() ? std::move(made).value() : nullptr;
    }
    program.decode_share = nullptr;
    late.why_on_cpu = std::string(status.message());
  }
  if (program.store.dtype == DType::kU8 && program.store.layout == Layout::kNHWC) return nullptr;
  auto decoder = std::make_unique<ImageDecoder>(std::move(program));
  decoder->leave_rest();
  return decoder;
}

Result<Transform> make_step(const Step& step) {
  HEADRACE_ASSIGN(const TransformEntry* entry, find_transform(step.name));
  return entry->make(step.params);
}

// Adds a step at the end: to the store, or to the steps and the size they give.
Status add_step(const Step& step, Program& program, Size& size, std::string& last_store_step) {
  HEADRACE_ASSIGN(Transform transform, make_step(step));
  if (auto* store_step = std::get_if<StoreStep>(&transform)) {
    last_store_step = step.name;
    return (*store_step)(program.store, channels_of(program.mode));
  }
  if (!last_store_step.empty())
    return invalid("must come before " + last_store_step + ", which is part of the last pass");
  NamedStep named{step.name, std::move(transform)};
  const int channels = channels_of(program.mode);
  if (const Geometric* geometric = named.geometric()) {
    HEADRACE_TRY(geometric->check_channels(channels));
    size = geometric->infer(size);
    named.moves = true;
  } else {
    HEADRACE_TRY(named.pixels()->check_channels(channels));
    named.moves = named.pixels()->moves();
  }
  for (const NamedStep& before : program.steps) named.draw += before.moves == named.moves;
  program.steps.push_back(std::move(named));
  return {};
}

Result<PixelMode> mode_named(const std::string& name) {
  if (name == "RGB") return PixelMode::kRgb;
  if (name == "L") return PixelMode::kGray;
  if (name == "RGBA") return PixelMode::kRgba;
  if (name == "P") return PixelMode::kNumbers;
  return invalid("no mode '" + name + "'; there are RGB, L, RGBA, P");
}

Status read_options(Params options, Program& program, bool& defer) {
  const std::string mode = options.take_text("mode", "RGB");
  program.fast = options.take_flag("fast", false);
  program.limits.strict = options.take_flag("strict", true);
  program.limits.orient = options.take_flag("orient", false);
  const std::string layout = options.take_text("layout", "HWC");
  const bool has_shape = options.values().count("shape") != 0;
  const std::vector<int> shape = options.take_integers("shape", {});
  const double views = options.take_number("variants", 1);
  const double max_pixels =
      options.take_number("max_pixels", static_cast<double>(program.limits.max_pixels));
  defer = options.take_flag("defer", false);
  HEADRACE_TRY(options.done());
  HEADRACE_ASSIGN(program.mode, mode_named(mode));
  if (layout != "HWC" && layout != "CHW")
    return invalid("no layout '" + layout + "'; pictures that are arrays are HWC or CHW");
  program.channels_first = layout == "CHW";
  if (has_shape) program.raw.emplace(shape.begin(), shape.end());
  if (!(max_pixels >= 1 && max_pixels <= 0x1.0p40))
    return invalid("parameter 'max_pixels' must be from 1 to 2^40");
  program.limits.max_pixels = static_cast<uint64_t>(max_pixels);
  if (!(views >= 1 && views <= kMostViews) || views != static_cast<int>(views))
    return invalid("parameter 'variants' is a whole number from 1 to " +
                   std::to_string(kMostViews));
  program.views = static_cast<int>(views);
  return {};
}

// Pictures that lie as elements: where the data say so, or the user does.
Status resolve_raw(const FieldSpec& spec, Program& program, Size& size) {
  if (spec.array && !spec.array->is_npy) {
    if (spec.array->dtype != DType::kU8)
      return invalid("a picture is u8, and the values are " +
                     std::string(dtype_name(*spec.array->dtype)) + "; hr.array takes them");
    if (!program.raw) program.raw = spec.array->shape;
  }
  if (!program.raw) return {};
  if (std::count(program.raw->begin(), program.raw->end(), kVaries) > 1)
    return invalid("shape may leave one extent open (-1), not several");
  HEADRACE_ASSIGN(const RawLayout layout, raw_layout(*program.raw, program.channels_first));
  size = {static_cast<int>(layout.width), static_cast<int>(layout.height)};
  return {};
}

}  // namespace

Result<std::unique_ptr<Decoder>> make_image_decoder(const FieldSpec& spec) {
  Program program;
  bool defer = false;
  HEADRACE_TRY(read_options(spec.options, program, defer));
  program.draw_group = spec.draw_group.value_or(Key(0).with(spec.name).value());
  Size size{static_cast<int>(kVaries), static_cast<int>(kVaries)};
  HEADRACE_TRY(resolve_raw(spec, program, size));
  std::string last_store_step;
  for (size_t i = 0; i < spec.steps.size(); ++i) {
    const Step& step = spec.steps[i];
    if (const Status s = add_step(step, program, size, last_store_step); !s.ok())
      return s.with("step " + std::to_string(i + 1) + " " + step.name);
  }
  program.joint = spec.joint;
  program.share = spec.share;
  program.value = {program.store.dtype, program.store.shape(size, channels_of(program.mode))};
  program.output = program.value;
  if (defer) return make_deferred_decoder(std::move(program));
  if (spec.late != nullptr && program.views == 1 && program.value.is_fixed()) {
    if (auto decoder = make_late(spec, program)) return decoder;
  }
  if (program.views > 1) {
    if (spec.joint != Joint::kNone) return invalid("variants and hr.joint do not go together");
    if (!program.value.is_fixed())
      return invalid("variants need steps that give one size: " + program.value.text() +
                     " varies; add .random_resized_crop(s) or .resize((h, w))");
    program.output.shape.insert(program.output.shape.begin(), program.views);
  }
  return std::unique_ptr<Decoder>(std::make_unique<ImageDecoder>(std::move(program)));
}

}  // namespace headrace

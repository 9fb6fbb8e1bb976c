// SPDX-License-Identifier: Apache-2.0
//
// A picture runs in legs.  A leg folds as many geometric steps as it can into one view and
// renders it in one pass: from the codec's rows for the first leg, from a picture in memory
// for the others; into the slot for the last leg, into a picture in memory for the others.
//
//   codec ══rows══► [ crop · resize · flip ] ══► slot                       the usual case: one leg
//   codec ══rows══► [ crop ] ══► picture ─jitter─► picture ══► [ flip ] ══► slot
#include "transform/image_decoder.h"

#include <array>
#include <utility>
#include <variant>

#include "base/buffer.h"
#include "codec/image.h"
#include "transform/resample.h"
#include "transform/transform.h"

namespace headrace {
namespace {

struct NamedStep {
  std::string name;
  Transform transform;
  const Geometric* geometric() const {
    const auto* g = std::get_if<std::unique_ptr<const Geometric>>(&transform);
    return g == nullptr ? nullptr : g->get();
  }
  const PixelStep* pixels() const {
    const auto* p = std::get_if<std::unique_ptr<const PixelStep>>(&transform);
    return p == nullptr ? nullptr : p->get();
  }
};

// What is fixed when the loader is built.
struct Program {
  PixelMode mode = PixelMode::kRgb;
  bool fast = false;
  ImageOptions limits;
  std::vector<NamedStep> steps;  // geometric and pixel steps; those of the store are in `store`
  Store store;
  uint64_t draw_group = 0;
  TensorSpec output;
};

// Pictures between legs are u8 pixels in rows.
constexpr Store kPicture{.layout = Layout::kNHWC};

// A thread's memory, kept from picture to picture.
struct Scratch {
  Resampler resampler;
  std::array<Buffer, 2> picture;  // a leg reads one and writes the other
};

Scratch& this_thread() {
  static thread_local Scratch scratch;
  return scratch;
}

// How much smaller the codec may decode: the box stays at least as large as what is made of it.
int shrink_for(const View& view) {
  for (const int shrink : {8, 4, 2})
    if (view.box.width >= shrink * view.size.width && view.box.height >= shrink * view.size.height)
      return shrink;
  return 1;
}

// The run of one picture.
class Run final : public ImageSink {
 public:
  Run(const Program& program, Key draws, Slot& slot)
      : program_(program), draws_(draws.with(program.draw_group)), slot_(slot) {}

  Result<ImageRequest> begin(const ImageInfo& info) override {
    const View view = next_leg({info.width, info.height});
    const int shrink = program_.fast ? shrink_for(view) : 1;
    HEADRACE_ASSIGN(const Box region, open_leg(view, shrink));
    return ImageRequest{region, program_.mode, shrink};
  }
  Status rows(const Rows& rows) override {
    scratch_.resampler.rows(rows);
    return {};
  }

  // The legs after the first.
  Status finish() {
    while (!in_slot_) {
      const Pixels picture{picture_data(), size_, channels()};
      if (const PixelStep* step = at_end() ? nullptr : program_.steps[next_].pixels()) {
        HEADRACE_TRY(step->apply(picture, rng(next_)));
        ++next_;
        continue;
      }
      which_ = 1 - which_;
      HEADRACE_ASSIGN(const Box region, open_leg(next_leg(picture.size), 1));
      scratch_.resampler.rows(part_of(picture, region));
    }
    return {};
  }

 private:
  int channels() const { return channels_of(program_.mode); }
  bool at_end() const { return next_ == program_.steps.size(); }
  Rng rng(size_t step) const { return Rng(draws_.with(step)); }
  uint8_t* picture_data() { return reinterpret_cast<uint8_t*>(scratch_.picture[which_].data()); }

  static Rows part_of(const Pixels& picture, const Box& region) {
    const size_t pixel = static_cast<size_t>(picture.channels);
    const size_t stride = static_cast<size_t>(picture.size.width) * pixel;
    return {picture.data + static_cast<size_t>(region.y) * stride +
                static_cast<size_t>(region.x) * pixel,
            stride, region.height};
  }

  // Folds steps from next_ on into one view of a picture of this size.
  View next_leg(Size size) {
    View view = identity_view(size);
    for (; !at_end(); ++next_) {
      const Geometric* step = program_.steps[next_].geometric();
      if (step == nullptr) break;
      const auto folded = compose(view, step->view(view.result(), rng(next_)));
      if (!folded) break;
      view = *folded;
    }
    return view;
  }

  // Where the leg goes, and what of its source it needs.
  Result<Box> open_leg(const View& view, int shrink) {
    size_ = view.result();
    in_slot_ = at_end();
    const Store& store = in_slot_ ? program_.store : kPicture;
    const size_t bytes = static_cast<size_t>(size_.width) * static_cast<size_t>(size_.height) *
                         static_cast<size_t>(channels()) * size_of(store.dtype);
    MutableBytes out;
    if (in_slot_) {
      HEADRACE_ASSIGN(out, slot_.room(store.shape(size_, channels())));
      if (out.size() < bytes) return internal("the slot is smaller than its shape");
    } else {
      scratch_.picture[which_].resize(bytes + kRowSlack);
      out = scratch_.picture[which_].span();
    }
    return scratch_.resampler.begin(view, shrink, channels(), store, out);
  }

  const Program& program_;
  const Key draws_;
  Slot& slot_;
  Scratch& scratch_ = this_thread();
  size_t next_ = 0;   // the first step not yet taken
  size_t which_ = 0;  // of scratch_.picture: where the last leg wrote
  Size size_;         // of what the last leg makes
  bool in_slot_ = false;
};

// Immutable, hence thread-safe.
class ImageDecoder final : public Decoder {
 public:
  explicit ImageDecoder(Program program) : program_(std::move(program)) {}
  const TensorSpec& output() const override { return program_.output; }
  Status run(Bytes value, Key draws, Slot& out) const override {
    HEADRACE_ASSIGN(const ImageCodec* codec, find_image_codec(value));
    Run run(program_, draws, out);
    HEADRACE_TRY(codec->decode(value, program_.limits, run));
    return run.finish();
  }

 private:
  const Program program_;
};

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
  if (const Geometric* geometric = named.geometric()) size = geometric->infer(size);
  program.steps.push_back(std::move(named));
  return {};
}

Status read_options(Params options, Program& program) {
  const std::string mode = options.take_text("mode", "RGB");
  program.fast = options.take_flag("fast", false);
  const double max_pixels =
      options.take_number("max_pixels", static_cast<double>(program.limits.max_pixels));
  HEADRACE_TRY(options.done());
  if (mode != "RGB" && mode != "L") return invalid("no mode '" + mode + "'; there are RGB, L");
  program.mode = mode == "RGB" ? PixelMode::kRgb : PixelMode::kGray;
  if (!(max_pixels >= 1 && max_pixels <= 0x1.0p40))
    return invalid("parameter 'max_pixels' must be from 1 to 2^40");
  program.limits.max_pixels = static_cast<uint64_t>(max_pixels);
  return {};
}

}  // namespace

Result<std::unique_ptr<Decoder>> make_image_decoder(const FieldSpec& spec) {
  Program program;
  HEADRACE_TRY(read_options(spec.options, program));
  program.draw_group = spec.draw_group.value_or(Key(0).with(spec.name).value());
  Size size{static_cast<int>(kVaries), static_cast<int>(kVaries)};
  std::string last_store_step;
  for (size_t i = 0; i < spec.steps.size(); ++i) {
    const Step& step = spec.steps[i];
    if (const Status s = add_step(step, program, size, last_store_step); !s.ok())
      return s.with("step " + std::to_string(i + 1) + " " + step.name);
  }
  program.output = {program.store.dtype, program.store.shape(size, channels_of(program.mode))};
  return std::unique_ptr<Decoder>(std::make_unique<ImageDecoder>(std::move(program)));
}

}  // namespace headrace

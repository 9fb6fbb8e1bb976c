// SPDX-License-Identifier: Apache-2.0
#include "transform/program/image_run.h"

#include <array>

#include "base/buffer.h"
#include "transform/kernels/resample.h"

namespace headrace {
namespace {

// Pictures between legs are u8 pixels in rows.
constexpr PixelOutput kPicture{.layout = Layout::kNHWC};

// How much smaller the codec may decode: the box stays at least as large as what is made of it.
int shrink_for(const View& view) {
  for (const int shrink : {8, 4, 2})
    if (view.box.width >= shrink * view.size.width && view.box.height >= shrink * view.size.height)
      return shrink;
  return 1;
}

// What was done before a flip, as done after it.
void mirror(PixelChange& change, const View& flips) {
  if (flips.flip) {
    change.x = flips.window.width - change.x - change.width;
    change.mirrored ^= 1;
  }
  if (flips.flip_down) {
    change.y = flips.window.height - change.y - change.height;
    change.mirrored ^= 2;
  }
}

Rows part_of(const Pixels& picture, const Box& region) {
  const auto pixel = static_cast<size_t>(picture.channels);
  const size_t stride = static_cast<size_t>(picture.size.width) * pixel;
  return {
      picture.data + static_cast<size_t>(region.y) * stride + static_cast<size_t>(region.x) * pixel,
      stride, region.height};
}

}  // namespace

// A thread's memory, kept from picture to picture.
struct ImageRun::Scratch {
  Resampler resampler;
  std::array<Buffer, 2> picture;  // a leg reads one and writes the other
};

ImageRun::Scratch& ImageRun::this_thread() {
  static thread_local Scratch scratch;
  return scratch;
}

ImageRun::ImageRun(const Program& program, Key draws, Slot& slot)
    : program_(program), draws_(draws), slot_(slot) {}

Result<ImageRequest> ImageRun::begin(const ImageInfo& info) {
  source_ = {info.width, info.height};
  HEADRACE_ASSIGN(const View view, next_leg(source_));
  const int shrink = program_.fast && info.can_shrink ? shrink_for(view) : 1;
  HEADRACE_ASSIGN(const Box region, open_leg(view, shrink));
  return ImageRequest{region, program_.mode, shrink};
}

Status ImageRun::rows(const Rows& rows) {
  scratch_.resampler.rows(rows);
  return {};
}

Status ImageRun::take(const SharedPicture& picture) {
  source_ = picture.size();
  HEADRACE_ASSIGN(const View view, next_leg(source_));
  HEADRACE_ASSIGN(const Box region, open_leg(view, 1));
  scratch_.resampler.rows(picture.rows(region));
  return {};
}

Status ImageRun::finish() {
  while (!in_slot_) {
    const Pixels picture{picture_data(), size_, channels()};
    if (!at_end() && program_.steps[next_].pixels() != nullptr) {
      const NamedStep& step = program_.steps[next_];
      if (const Status s = step.pixels()->apply(picture, rng(step)); !s.ok())
        return s.with(name_of(next_));
      if (const auto moved = step.pixels()->matrix(size_, rng(step))) map_ = map_.then(*moved);
      ++next_;
      continue;
    }
    which_ = 1 - which_;
    HEADRACE_ASSIGN(const View view, next_leg(picture.size));
    HEADRACE_ASSIGN(const Box region, open_leg(view, 1));
    scratch_.resampler.rows(part_of(picture, region));
  }
  return {};
}

Status with_remedy(const Status& status) {
  const Status out =
      corrupt(std::string(status.message()) + "; strict=False decodes what there is");
  return status.place().offset < 0 ? out : out.at(static_cast<uint64_t>(status.place().offset));
}

Result<View> view_of_steps(const Program& program, Key draws, Size source,
                           std::vector<PixelChange>& changes) {
  class NoSlot final : public Slot {
    Result<MutableBytes> room(std::span<const int64_t>) override {
      return internal("no pixels are made");
    }
  } nowhere;
  ImageRun run(program, draws, nowhere);
  HEADRACE_ASSIGN(View view, run.next_leg(source));
  for (; !run.at_end(); ++run.next_) {
    const NamedStep& step = program.steps[run.next_];
    const Rng rng = run.rng(step);
    if (step.pixels() != nullptr && step.pixels()->has_changes()) {
      step.pixels()->changes(view.result(), rng, changes);
    } else if (step.geometric() != nullptr && step.geometric()->only_flips()) {
      const View flips = step.geometric()->view(view.result(), rng);
      view.flip ^= flips.flip;
      view.flip_down ^= flips.flip_down;
      for (PixelChange& change : changes) mirror(change, flips);
    } else {
      return unsupported(run.name_of(run.next_) +
                         ": it needs the pixels that the steps before it make, and there are none");
    }
  }
  return view;
}

Rng ImageRun::rng(const NamedStep& step) const {
  return Rng(step.moves ? draws_.with(step.draw) : draws_.with("pixels").with(step.draw));
}

std::string ImageRun::name_of(size_t step) const {
  return "step " + std::to_string(step + 1) + " " + program_.steps[step].name;
}

uint8_t* ImageRun::picture_data() {
  return reinterpret_cast<uint8_t*>(scratch_.picture[which_].data());
}

// Folds steps from next_ on into one view of a picture of this size.
Result<View> ImageRun::next_leg(Size size) {
  View view = identity_view(size);
  for (; !at_end(); ++next_) {
    const NamedStep& step = program_.steps[next_];
    if (step.geometric() == nullptr) break;
    if (const Status s = step.geometric()->check_size(view.result()); !s.ok())
      return s.with(name_of(next_));
    const auto folded = compose(view, step.geometric()->view(view.result(), rng(step)));
    if (!folded) break;
    view = *folded;
  }
  return view;
}

// Where the leg goes, and what of its source it needs.
Result<Box> ImageRun::open_leg(const View& view, int shrink) {
  size_ = view.result();
  map_ = map_.then(affine_of(view));
  in_slot_ = at_end();
  const PixelOutput& store = in_slot_ ? program_.store : kPicture;
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

}  // namespace headrace

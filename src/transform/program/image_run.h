// SPDX-License-Identifier: Apache-2.0
//
// The run of one picture through the steps, in legs.  A leg folds as many geometric steps as it
// can into one view and renders it in one pass: from the codec's rows (or a shared picture) for
// the first leg, from a picture in memory for the others; into the slot for the last leg, into
// a picture in memory for the others.
//
//   codec ══rows══► [ crop · resize · flip ] ══► slot                       the usual case: one leg
//   codec ══rows══► [ crop ] ══► picture ─jitter─► picture ══► [ flip ] ══► slot
#pragma once

#include "codec/decoder.h"
#include "transform/geometry/affine.h"
#include "transform/program/image_program.h"
#include "transform/program/shared_picture.h"

namespace headrace {

// All steps as one view of a picture of this size, and the changes of the pixels that follow;
// kUnsupported where they take several passes.
Result<View> view_of_steps(const Program& program, Key draws, Size source,
                           std::vector<PixelChange>& changes);

// "…; strict=False decodes what there is"
Status with_remedy(const Status& status);

// One thread; made anew for each result.
class ImageRun final : public ImageSink {
 public:
  // `draws` are the sample's, with the name of the field's group (and of the view).
  ImageRun(const Program& program, Key draws, Slot& slot);

  // As a codec's sink; finish() follows.
  Result<ImageRequest> begin(const ImageInfo& info) override;
  Status rows(const Rows& rows) override;
  // Instead of the two: from a picture that is there.
  Status take(const SharedPicture& picture);
  // The legs after the first.
  Status finish();

  // What the first leg reads of a picture of this size.  Asked of a fresh run.
  Box first_box(Size size) {
    const auto view = next_leg(size);
    return view.ok() ? view.value().box : Box{0, 0, size.width, size.height};
  }
  // Known after finish(): from the picture to the result.
  const Affine& map() const { return map_; }
  Size source() const { return source_; }
  Size result() const { return size_; }

 private:
  friend Result<View> view_of_steps(const Program& program, Key draws, Size source,
                                    std::vector<PixelChange>& changes);
  struct Scratch;
  static Scratch& this_thread();

  int channels() const { return channels_of(program_.mode); }
  bool at_end() const { return next_ == program_.steps.size(); }
  Rng rng(const NamedStep& step) const;
  uint8_t* picture_data();
  std::string name_of(size_t step) const;
  Result<View> next_leg(Size size);
  Result<Box> open_leg(const View& view, int shrink);

  const Program& program_;
  const Key draws_;
  Slot& slot_;
  Scratch& scratch_ = this_thread();
  size_t next_ = 0;   // the first step not yet taken
  size_t which_ = 0;  // of the scratch pictures: where the last leg wrote
  Size source_;       // of the picture
  Size size_;         // of what the last leg makes
  bool in_slot_ = false;
  Affine map_;
};

}  // namespace headrace

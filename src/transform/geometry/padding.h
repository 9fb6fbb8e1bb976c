// SPDX-License-Identifier: Apache-2.0
//
// What pad and random_crop share: how much is added on each side, and what stands there.
#pragma once

#include <string>
#include <vector>

#include "transform/kernels/ranges.h"
#include "transform/params.h"

namespace headrace {

struct Sides {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  bool operator==(const Sides&) const = default;

  // A picture of this size with them.
  Size around(Size in) const { return {in.width + left + right, in.height + top + bottom}; }
};

// "padding": one number, (left and right, top and bottom), or (left, top, right, bottom).
Result<Sides> sides_from(const std::vector<int>& numbers);

struct Filling {
  Padding padding;
  Colour fill;

  Status check_channels(int channels) const { return fill.check_channels(channels, "fill"); }

  // Takes "fill" and "padding_mode"; checked() after the parameters are done().
  class Given {
   public:
    explicit Given(Params& params)
        : fill_(params.take_numbers("fill", {0})),
          mode_(params.take_text("padding_mode", "constant")) {}
    Result<Filling> checked() const;

   private:
    const std::vector<double> fill_;
    const std::string mode_;
  };
};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// mixup and cutmix: each sample of a batch is mixed with the one before it (the first with the
// last), as torchvision's MixUp and CutMix do it; labels become the shares of the classes.
//
//   mixup    x[i] = λ·x[i] + (1-λ)·x[i-1]                      λ ~ Beta(α, α), one a batch
//   cutmix   a box of x[i] comes from x[i-1]                   its area is 1-λ of the picture's
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "batch/column.h"
#include "batch/stage.h"

namespace headrace {

struct MixKind {
  std::string name;  // "mixup" or "cutmix"
  double alpha = 1;
  double p = 1;  // of the batches it is chosen for, this share is mixed
};

struct MixOptions {
  std::vector<MixKind> kinds;  // one of them is drawn for each batch
  std::string image = "image";
  std::string label = "label";
  int64_t classes = 0;
  bool channels_last = false;
  // The pictures are made by a later stage: it is told what was drawn (Column::late_mix), and the
  // labels are mixed here.  The image's ColumnSpec says what that stage makes.
  bool pictures_later = false;
};

// Checks the columns: pictures of one size (floats for mixup), one whole number a label.
Result<std::unique_ptr<BatchStage>> make_mix(const MixOptions& options,
                                             std::span<const ColumnSpec> columns);

// A draw from Beta(a, a).
double draw_beta(double a, Rng& rng);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Made by ./dev docs from the engine's table (src/transform): change it there.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/value.h"

namespace hr {

// What may be left out of the steps in headrace/field.h; an empty list is left out too.

struct RandomResizedCropOptions {
  Numbers scale = {0.08, 1};
  Numbers ratio = {3.0 / 4, 4.0 / 3};
  std::string filter = "bilinear";
};

struct RandomCropOptions {
  Numbers padding = 0;
  bool pad_if_needed = false;
  Numbers fill = 0;
  std::string padding_mode = "constant";
};

struct PadOptions {
  Numbers fill = 0;
  std::string padding_mode = "constant";
};

struct RandomRotationOptions {
  std::string interpolation = "nearest";
  Numbers center = {};
  Numbers fill = 0;
};

struct RandomAffineOptions {
  Numbers translate = {0, 0};
  Numbers scale = {1, 1};
  Numbers shear = {};
  std::string interpolation = "nearest";
  Numbers fill = 0;
  Numbers center = {};
};

struct ColorJitterOptions {
  Numbers brightness = {};
  Numbers contrast = {};
  Numbers saturation = {};
  Numbers hue = {};
  double p = 1;
};

struct GaussianBlurOptions {
  Numbers sigma = {0.1, 2};
  double p = 1;
};

struct RandomErasingOptions {
  double p = 0.5;
  Numbers scale = {0.02, 0.33};
  Numbers ratio = {0.3, 3.3};
  NumbersOrWord value = 0;
};

struct RandAugmentOptions {
  int64_t num_ops = 2;
  int64_t magnitude = 9;
  int64_t num_magnitude_bins = 31;
  std::string interpolation = "nearest";
  Numbers fill = {};
};

struct TrivialAugmentOptions {
  int64_t num_magnitude_bins = 31;
  std::string interpolation = "nearest";
  Numbers fill = {};
};

struct AutoAugmentOptions {
  std::string policy = "imagenet";
  std::string interpolation = "nearest";
  Numbers fill = {};
};

}  // namespace hr

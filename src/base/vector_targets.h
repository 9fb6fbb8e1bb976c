// SPDX-License-Identifier: Apache-2.0
//
// Comes before every include of Highway: which instruction sets it compiles for.  Nothing wider
// than 256 bits (transform/kernels.h says why), nothing of unknown width.
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// SPDX-License-Identifier: Apache-2.0
//
// The kernels (pictures.cu), compiled for a chip by NVRTC and kept on disk.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace headrace {

// The text of pictures.cu.
const std::string& picture_kernels();

// Machine code of `source` for a chip of this compute capability (90: 9.0).  Compiled once for each
// text, chip and version of NVRTC: then it is read from `cache` ("": nothing is kept).
Result<std::vector<char>> compile_kernels(const std::string& source, int capability,
                                          const std::string& cache);

// The user's cache folder, headrace/kernels in it; "" where there is none.
std::string kernel_cache();

}  // namespace headrace

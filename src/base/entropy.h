// SPDX-License-Identifier: Apache-2.0
//
// Numbers that no other process has, from the kernel.  (Not std::random_device: libstdc++ asks
// arc4random(), which glibc has only since 2.36; wheels are for older ones too.)
#pragma once

#include <cstdint>

namespace headrace {

uint64_t entropy_word();

}  // namespace headrace

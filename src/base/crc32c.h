// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace headrace {

// CRC-32C (Castagnoli) of `data`, continuing from `seed` (the CRC of what came before).
// Slicing by eight, portable: about 2 GB/s.
uint32_t crc32c(Bytes data, uint32_t seed = 0);

}  // namespace headrace

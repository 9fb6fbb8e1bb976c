// SPDX-License-Identifier: Apache-2.0
#include "array/member_sum.h"

#include <fmt/format.h>

#include "base/inflate.h"

namespace headrace {

Status check_sum(const Array& array, Bytes chunk) {
  const uint32_t found = crc32(chunk, array.sum->before);
  if (found == array.sum->all) return {};
  return corrupt(fmt::format(
      "the CRC-32 of member '{}.npy' is wrong, {:08x} is stored and {:08x} found: the file was "
      "damaged, copy or write it again",
      array.name, array.sum->all, found));
}

}  // namespace headrace

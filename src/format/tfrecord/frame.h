// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/crc32c.h"
#include "format/format.h"

namespace headrace {

inline constexpr uint64_t kTfrecordHead = 12;  // length and its checksum
inline constexpr uint64_t kTfrecordTail = 4;   // checksum of the data

// CRC-32C, rotated right by 15, plus a constant: so that data with checksums in it can be
// checksummed again.
inline uint32_t masked_crc32c(Bytes data) {
  const uint32_t crc = crc32c(data);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// The feature that holds the key of a sample, where pack wrote it.
inline constexpr std::string_view kExampleKey = "__key__";

// tfrecord_writer.cc
std::unique_ptr<Writer> make_tfrecord_writer(ShardOutput out);

}  // namespace headrace

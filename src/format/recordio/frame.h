// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/buffer.h"
#include "format/format.h"

namespace headrace {

inline constexpr uint32_t kRecordioMagic = 0xced7230a;
inline constexpr uint64_t kRecordioHead = 8;  // magic; kind of part and length
inline constexpr uint32_t kRecordioMaxLength = (1u << 29) - 1;
inline constexpr uint64_t kImageHeader = 24;  // flag, label, id, id2

// What a part is of its record.
enum class RecordPart : uint32_t { kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3 };

inline uint64_t recordio_padded(uint64_t length) {
  return (length + 3) / 4 * 4;
}

// The parts of one record, heads and all, as the record that they make.  Bad bytes are kCorrupt
// with their offset.
Status join_record(Bytes stored, Buffer& out);

// recordio_writer.cc; without `index` the .idx is not written.
Result<std::unique_ptr<Writer>> make_recordio_writer(ShardOutput out);
// One payload and the numbers of one field.
Status recordio_can_hold(const Schema& schema);

}  // namespace headrace

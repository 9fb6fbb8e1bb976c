// SPDX-License-Identifier: Apache-2.0
//
// Device memory of one stream, used from its beginning for each batch: what the stream did before
// is done when it comes to the next.
#pragma once

#include <algorithm>

#include "device/gpu.h"

namespace headrace {

// One thread at a time.
class DeviceScratch {
 public:
  DeviceScratch(const Gpu& gpu, StreamPointer stream, uint64_t most_bytes)
      : gpu_(gpu), stream_(std::move(stream)), most_bytes_(most_bytes) {}

  // Memory of at least so many bytes, from its beginning; the stream may still use it for what was
  // handed over before.
  Status begin(uint64_t bytes) {
    used_ = 0;
    if (buffer_ && buffer_->size() >= bytes) return {};
    buffer_.reset();
    // Some more than that, up to the most: batches differ a little, and freeing memory waits for
    // the whole device.
    const uint64_t roomy = std::max(bytes, std::min(bytes + bytes / 4, most_bytes_));
    HEADRACE_ASSIGN(buffer_, gpu_.memory().take_idle(roomy, stream_));
    return {};
  }
  // The next bytes, at a multiple of 256.
  CudaAddress take(uint64_t bytes) {
    const CudaAddress at = reinterpret_cast<CudaAddress>(buffer_->data()) + used_;
    used_ += (bytes + 255) / 256 * 256;
    return at;
  }

 private:
  const Gpu& gpu_;
  const StreamPointer stream_;
  const uint64_t most_bytes_;
  SharedBuffer buffer_;
  uint64_t used_ = 0;
};

}  // namespace headrace

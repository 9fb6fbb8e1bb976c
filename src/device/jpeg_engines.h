// SPDX-License-Identifier: Apache-2.0
//
// The chip's JPEG engines, through nvJPEG's hardware backend: baseline pictures of one scan, a
// batch of one sampling at a time, as planes (Y, Cb, Cr) before any upsampling.  These are
// libjpeg's values bit for bit; nvJPEG's own upsampling and colours are not used.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/status.h"
#include "device/driver.h"

namespace headrace {

// Where the planes of a picture go; nvJPEG's own layout (nvjpegImage_t).
struct JpegPlanes {
  std::array<unsigned char*, 4> data{};
  std::array<size_t, 4> pitch{};
};

struct NvJpeg;  // its functions

// Thread-safe.  One call of a decoder at a time, of whichever thread, loader or batch: a call keeps
// all engines of the chip busy, and waits for them on the processor.  Calls beside each other took
// 168 us of processor time for a picture instead of 33, and gave 22,500 pictures a second instead
// of 29,500 (four threads; docs/adr/0017).
class JpegEngines {
 public:
  // kUnsupported: no nvJPEG, or a chip without engines.
  static Result<std::shared_ptr<JpegEngines>> open();
  ~JpegEngines();
  JpegEngines(const JpegEngines&) = delete;
  JpegEngines& operator=(const JpegEngines&) = delete;

 private:
  JpegEngines(const NvJpeg& nvjpeg, void* handle) : nvjpeg_(nvjpeg), handle_(handle) {}
  friend class JpegBatchDecoder;
  const NvJpeg& nvjpeg_;
  void* handle_;
  Mutex calls_;
};

// One thread at a time.
class JpegBatchDecoder {
 public:
  static Result<std::unique_ptr<JpegBatchDecoder>> make(std::shared_ptr<JpegEngines> engines);
  ~JpegBatchDecoder();
  JpegBatchDecoder(const JpegBatchDecoder&) = delete;
  JpegBatchDecoder& operator=(const JpegBatchDecoder&) = delete;

  // Decodes pictures of one sampling, in the order of the stream.  kCorrupt: one of them cannot be
  // decoded, and none was.
  Status decode(const std::vector<Bytes>& pictures, std::vector<JpegPlanes>& planes,
                CudaStream stream);

 private:
  JpegBatchDecoder(std::shared_ptr<JpegEngines> engines, void* state)
      : engines_(std::move(engines)), state_(state) {}
  const std::shared_ptr<JpegEngines> engines_;
  void* state_;
  size_t prepared_ = 0;  // for batches of so many
  std::vector<const unsigned char*> data_;
  std::vector<size_t> lengths_;
};

}  // namespace headrace

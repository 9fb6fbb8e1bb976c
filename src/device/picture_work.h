// SPDX-License-Identifier: Apache-2.0
//
// PictureWork: the pictures of a batch, from what the CPU left to the column on the device.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "batch/column.h"
#include "codec/deferred.h"
#include "device/gpu.h"
#include "device/picture_job.h"
#include "device/scratch.h"
#include "trace/clock.h"

namespace headrace {

// Pictures that wait for the chip, as long as it lives.
class WaitingPictures {
 public:
  WaitingPictures(std::shared_ptr<DecodeShare> share, int64_t pictures)
      : share_(std::move(share)), pictures_(pictures) {
    share_->handed_over(pictures_, steady_ns());
  }
  ~WaitingPictures() {
    if (share_) share_->finished(pictures_, steady_ns());
  }
  WaitingPictures(WaitingPictures&&) = default;
  WaitingPictures& operator=(WaitingPictures&&) = delete;

 private:
  std::shared_ptr<DecodeShare> share_;
  const int64_t pictures_;
};

// What must live until the stream has done what was handed to it.
struct InFlight {
  std::vector<SharedBuffer> buffers;
  std::vector<WaitingPictures> waiting;
};

// One thread at a time; all it does is in the order of its stream, which has come to its end before
// this is destroyed.
class PictureWork {
 public:
  PictureWork(std::shared_ptr<Gpu> gpu, const StreamPointer& stream, uint64_t scratch_bytes)
      : gpu_(std::move(gpu)),
        owned_stream_(stream),
        stream_(stream->handle()),
        scratch_bytes_(scratch_bytes),
        job_pool_(BufferPool::make(uint64_t{1} << 20, gpu_->pinned())),
        scratch_(*gpu_, stream, scratch_bytes),
        job_memory_(*gpu_, stream, uint64_t{1} << 20) {}

  // Values are deferred pictures, or pixels (spec.has_pixels).  `column` becomes the result's, on
  // the device once the stream has got there.  The context is current.  kCorrupt or kUnsupported:
  // neither the engines nor the CPU can make one of the pictures.
  Status run(const DeferredSpec& spec, Column& column, InFlight& in_flight);

 private:
  struct Item {
    DeferredValue value;
    PictureJob job;
    JobMemory memory;
    bool is_rendered = false;
  };
  // Made with the first picture of a sampling.
  struct PerSampling {
    std::unique_ptr<JpegBatchDecoder> decoder;
    std::shared_ptr<CudaEvent> done;  // its last call
    std::vector<JpegPlanes> planes;   // of that call: where they go
  };
  // The pictures of the column, into `out`.
  Status make(const DeferredSpec& spec, const Column& column, const PictureOutput& out,
              InFlight& in_flight);
  Status mix(const LateMix& how, size_t pictures, const PictureOutput& made, CudaAddress to);
  Status plan(const DeferredSpec& spec, const Column& column, InFlight& in_flight);
  // Memory for the next pictures and for what is told of them; where the engines write it, once
  // those before are done with it.
  Status begin(uint64_t bytes, uint64_t told_bytes, bool for_engines);
  Status end();
  Status run_part(const DeferredSpec& spec, size_t begin, size_t end, const PictureOutput& out,
                  InFlight& in_flight);
  Status decode(const DeferredSpec& spec, size_t begin, size_t end, InFlight& in_flight);
  Result<PerSampling*> decoder_for(int sampling);
  Status render(const DeferredSpec& spec, Item& item, InFlight& in_flight);
  Status copy_pixels(const Column& column, const PictureOutput& out, InFlight& in_flight);
  // What the kernels are told of pictures: jobs, then the changes that they point to.
  struct Told {
    std::vector<PictureJob> jobs;
    std::vector<PixelChange> changes;
    int contrasts = 0;  // of one picture, at most
    bool resamples = false;
  };
  Status launch(Told& told, const PictureOutput& out, InFlight& in_flight);
  Status launch_kernels(const Gpu::Kernels& kernels, const Told& told, CudaAddress jobs,
                        size_t pictures, const PictureOutput& out);
  Status upload(CudaAddress to, const void* from, uint64_t bytes);

  const std::shared_ptr<Gpu> gpu_;
  const StreamPointer owned_stream_;
  const CudaStream stream_;
  const uint64_t scratch_bytes_;
  const std::shared_ptr<BufferPool> job_pool_;
  DeviceScratch scratch_;            // planes and what the kernels make of them
  DeviceScratch job_memory_;         // what the kernels are told
  std::shared_ptr<CudaEvent> last_;  // after all that was handed over
  std::array<PerSampling, kJpegSamplings> decoders_;
  std::vector<Item> items_;
};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Gpu: one device as the stage uses it: context, kernels, memory.
#pragma once

#include <memory>
#include <string>

#include "device/device_memory.h"
#include "device/driver.h"
#include "device/jpeg_engines.h"

namespace headrace {

// One for each device of the process, for good.  Thread-safe.
class Gpu {
 public:
  // Device `index` as CUDA counts those that this process may use.
  static Result<std::shared_ptr<Gpu>> open(int index);

  const CudaDriver& driver() const { return driver_; }
  CudaContext context() const { return context_; }
  int index() const { return index_; }
  const std::string& name() const { return name_; }  // "NVIDIA H200"
  DeviceMemory& memory() const { return *memory_; }
  std::shared_ptr<Arena> pinned() const { return pinned_; }
  // Of its memory, by whomever it is used.
  Result<uint64_t> free_bytes() const;

  struct Kernels {
    CudaFunction weigh = nullptr;
    CudaFunction colours = nullptr;
    CudaFunction first_pass = nullptr;
    CudaFunction gray_sums = nullptr;
    CudaFunction second_pass = nullptr;
    CudaFunction mix = nullptr;
  };
  // Compiled with the first call.
  Result<const Kernels*> kernels() const;
  // Opened with the first call.
  Result<std::shared_ptr<JpegEngines>> engines() const;

 private:
  Gpu(const CudaDriver& driver, CudaContext context, int index, std::string name, int capability);
  Result<Kernels> load_kernels() const;

  const CudaDriver& driver_;
  const CudaContext context_;
  const int index_;
  const std::string name_;
  const int capability_;
  const std::shared_ptr<DeviceMemory> memory_;
  const std::shared_ptr<Arena> pinned_;
  mutable Mutex mu_;
  mutable std::unique_ptr<Result<Kernels>> kernels_ HEADRACE_GUARDED_BY(mu_);
  mutable std::unique_ptr<Result<std::shared_ptr<JpegEngines>>> engines_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace

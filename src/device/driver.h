// SPDX-License-Identifier: Apache-2.0
//
// CUDA's driver, as far as it is used here.  Names and types are the driver's own, written down
// once more because its headers are not there when headrace is built.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace headrace {

using CudaContext = void*;
using CudaStream = void*;  // also what the runtime and frameworks call a stream
using CudaEventHandle = void*;
using CudaModule = void*;
using CudaFunction = void*;
using CudaAddress = unsigned long long;

inline constexpr int kCudaOutOfMemory = 2;
inline constexpr int kCudaNotReady = 600;
inline constexpr int kCudaIllegalAddress = 700;  // the first of those that end a context

// Immutable once loaded, hence thread-safe.
struct CudaDriver {
  int (*init)(unsigned flags);
  int (*driver_version)(int* version);
  int (*error_name)(int error, const char** name);
  int (*device_count)(int* count);
  int (*device_get)(int* device, int ordinal);
  int (*device_name)(char* name, int length, int device);
  int (*device_attribute)(int* value, int attribute, int device);
  int (*primary_context_retain)(CudaContext* context, int device);
  int (*context_push)(CudaContext context);
  int (*context_pop)(CudaContext* context);
  int (*context_synchronize)();
  int (*capture_mode)(int* mode);  // of this thread; gives the one before
  int (*memory_info)(size_t* free, size_t* total);
  int (*memory_allocate)(CudaAddress* address, size_t bytes);
  int (*memory_free)(CudaAddress address);
  int (*host_register)(void* data, size_t bytes, unsigned flags);
  int (*host_unregister)(void* data);
  int (*copy_to_device)(CudaAddress to, const void* from, size_t bytes, CudaStream stream);
  int (*copy_to_host)(void* to, CudaAddress from, size_t bytes, CudaStream stream);
  int (*stream_create)(CudaStream* stream, unsigned flags);
  int (*stream_destroy)(CudaStream stream);
  int (*stream_synchronize)(CudaStream stream);
  int (*stream_wait_event)(CudaStream stream, CudaEventHandle event, unsigned flags);
  int (*event_create)(CudaEventHandle* event, unsigned flags);
  int (*event_destroy)(CudaEventHandle event);
  int (*event_record)(CudaEventHandle event, CudaStream stream);
  int (*event_query)(CudaEventHandle event);
  int (*event_synchronize)(CudaEventHandle event);
  int (*module_load)(CudaModule* module, const void* image);
  int (*module_function)(CudaFunction* function, CudaModule module, const char* name);
  int (*launch)(CudaFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                CudaStream stream, void** parameters, void** extra);

  // OK for 0; else "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", kExhausted or kInternal.
  Status check(int error, const char* what) const;
};

// Loaded and initialised with the first call.  Where that failed, every call says why.
Result<const CudaDriver*> cuda_driver();

// Makes a context current in this thread for as long as it lives.  Calls within it may come while
// another thread captures a CUDA graph: they are no part of it, and do not break it.
class CudaCurrent {
 public:
  CudaCurrent(const CudaDriver& driver, CudaContext context) : driver_(driver) {
    driver_.context_push(context);
    driver_.capture_mode(&mode_);
  }
  ~CudaCurrent() {
    driver_.capture_mode(&mode_);
    CudaContext was = nullptr;
    driver_.context_pop(&was);
  }
  CudaCurrent(const CudaCurrent&) = delete;
  CudaCurrent& operator=(const CudaCurrent&) = delete;

 private:
  const CudaDriver& driver_;
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED; then the mode before
};

}  // namespace headrace

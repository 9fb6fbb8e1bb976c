// SPDX-License-Identifier: Apache-2.0
#include "device/driver.h"

#include <fmt/format.h>

#include "device/library.h"

namespace headrace {
namespace {

constexpr int kOldestDriver = 12000;  // CUDA 12.0: what nvJPEG and NVRTC of today's wheels ask for

Result<CudaDriver> load() {
  HEADRACE_ASSIGN(
      const SharedLibrary library,
      SharedLibrary::load({"libcuda.so.1"}, "CUDA's driver",
                          "device=\"cuda\" needs an NVIDIA GPU and its driver; nvidia-smi tells "
                          "whether they are there, device=\"cpu\" needs neither"));
  CudaDriver d{};
  HEADRACE_TRY(library.find("cuInit", d.init));
  HEADRACE_TRY(library.find("cuDriverGetVersion", d.driver_version));
  HEADRACE_TRY(library.find("cuGetErrorName", d.error_name));
  HEADRACE_TRY(library.find("cuDeviceGetCount", d.device_count));
  HEADRACE_TRY(library.find("cuDeviceGet", d.device_get));
  HEADRACE_TRY(library.find("cuDeviceGetName", d.device_name));
  HEADRACE_TRY(library.find("cuDeviceGetAttribute", d.device_attribute));
  HEADRACE_TRY(library.find("cuDevicePrimaryCtxRetain", d.primary_context_retain));
  HEADRACE_TRY(library.find("cuCtxPushCurrent_v2", d.context_push));
  HEADRACE_TRY(library.find("cuCtxPopCurrent_v2", d.context_pop));
  HEADRACE_TRY(library.find("cuCtxSynchronize", d.context_synchronize));
  HEADRACE_TRY(library.find("cuThreadExchangeStreamCaptureMode", d.capture_mode));
  HEADRACE_TRY(library.find("cuMemGetInfo_v2", d.memory_info));
  HEADRACE_TRY(library.find("cuMemAlloc_v2", d.memory_allocate));
  HEADRACE_TRY(library.find("cuMemFree_v2", d.memory_free));
  HEADRACE_TRY(library.find("cuMemHostRegister_v2", d.host_register));
  HEADRACE_TRY(library.find("cuMemHostUnregister", d.host_unregister));
  HEADRACE_TRY(library.find("cuMemcpyHtoDAsync_v2", d.copy_to_device));
  HEADRACE_TRY(library.find("cuMemcpyDtoHAsync_v2", d.copy_to_host));
  HEADRACE_TRY(library.find("cuStreamCreate", d.stream_create));
  HEADRACE_TRY(library.find("cuStreamDestroy_v2", d.stream_destroy));
  HEADRACE_TRY(library.find("cuStreamSynchronize", d.stream_synchronize));
  HEADRACE_TRY(library.find("cuStreamWaitEvent", d.stream_wait_event));
  HEADRACE_TRY(library.find("cuEventCreate", d.event_create));
  HEADRACE_TRY(library.find("cuEventDestroy_v2", d.event_destroy));
  HEADRACE_TRY(library.find("cuEventRecord", d.event_record));
  HEADRACE_TRY(library.find("cuEventQuery", d.event_query));
  HEADRACE_TRY(library.find("cuEventSynchronize", d.event_synchronize));
  HEADRACE_TRY(library.find("cuModuleLoadData", d.module_load));
  HEADRACE_TRY(library.find("cuModuleGetFunction", d.module_function));
  HEADRACE_TRY(library.find("cuLaunchKernel", d.launch));
  if (const int error = d.init(0); error != 0)
    return unsupported(
        fmt::format("{}; device=\"cuda\" needs an NVIDIA GPU that this process may "
                    "use (CUDA_VISIBLE_DEVICES, nvidia-smi)",
                    d.check(error, "cuInit").message()));
  int version = 0;
  HEADRACE_TRY(d.check(d.driver_version(&version), "cuDriverGetVersion"));
  if (version < kOldestDriver)
    return unsupported(
        fmt::format("CUDA's driver ({}) is for CUDA {}.{}; headrace needs 12.0 or newer: update "
                    "the driver, or say device=\"cpu\"",
                    library.path(), version / 1000, version % 1000 / 10));
  return d;
}

}  // namespace

Status CudaDriver::check(int error, const char* what) const {
  if (error == 0) return {};
  const char* name = nullptr;
  error_name(error, &name);
  const std::string text =
      fmt::format("{}: {}", what, name == nullptr ? "error " + std::to_string(error) : name);
  if (error == kCudaOutOfMemory) return exhausted(text);
  // From here on every call of this process fails, the framework's too.
  if (error >= kCudaIllegalAddress)
    return internal("the GPU failed (" + text +
                    "), and this process can use it no more; start it again from its checkpoint");
  return internal(text);
}

Result<const CudaDriver*> cuda_driver() {
  static const auto& loaded = *new Result<CudaDriver>(load());
  if (!loaded.ok()) return loaded.status();
  return &loaded.value();
}

}  // namespace headrace

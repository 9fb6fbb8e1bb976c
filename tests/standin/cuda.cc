// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for CUDA's driver, so that the way to the GPU is tested where there is none.  What is
// handed over happens later (streams.h); host memory is read when its turn comes, as drivers may do
// with memory of any kind, and must then hold what it held when it was named.  The kernels are
// headrace's own, compiled by the C++ compiler.
//
// HEADRACE_STANDIN_VERSION, _DEVICES, _MEMORY, _DELAY_US, _TEMPER: what it says it is; how it
// works. HEADRACE_STANDIN_LOST: after so many launches every call fails, as of a device that is
// lost.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "memory.h"
#include "streams.h"

#define EXPORT extern "C" __attribute__((visibility("default")))
#define __device__
#define __global__
struct Three {
  unsigned x = 0, y = 0, z = 0;
};
static thread_local Three blockIdx, threadIdx;
static const Three blockDim{1, 1, 1}, gridDim{1, 1, 1};
static unsigned __float_as_uint(float f) {
  unsigned u;
  std::memcpy(&u, &f, 4);
  return u;
}
static float __uint_as_float(unsigned u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
static float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include "device/pictures.cu"
#pragma GCC diagnostic pop

using standin::fault;
using standin::Memory;
using standin::setting;
using standin::Streams;

namespace {

std::mutex everything;
std::map<char*, size_t> registered;
std::atomic<long> launches{0};
thread_local int contexts = 0;  // that are current in this thread

standin::Handles<standin::Stream>& streams() {
  static auto* all = new standin::Handles<standin::Stream>("a stream");
  return *all;
}
standin::Handles<standin::Event>& events() {
  static auto* all = new standin::Handles<standin::Event>("an event");
  return *all;
}

standin::StreamPointer stream_of(void* handle, const char* call) {
  static auto* default_stream = new standin::StreamPointer(Streams::all().make());
  return handle == nullptr ? *default_stream : streams().at(handle, call);
}

// 0; else what a call without a context, or of a device that is lost, gives.
int status_here() {
  if (contexts == 0) return 201;
  const long lost = setting("HEADRACE_STANDIN_LOST", 0);
  return lost > 0 && launches >= lost ? 719 : 0;
}
#define NEEDS_CONTEXT \
  if (const int status = status_here(); status != 0) return status

}  // namespace

// For the stand-in of nvJPEG.
EXPORT void standin_add(void* stream, const std::function<void()>& work) {
  Streams::all().add(stream_of(stream, "nvJPEG"), {work, nullptr, nullptr, 0});
}
EXPORT void standin_add_apart(const std::function<void()>& work) {
  Streams::all().add_apart(work);
}
EXPORT bool standin_has_context() {
  return contexts > 0;
}
// For tests: bytes of device memory in use; the most that were; that nobody wrote what was freed.
EXPORT size_t standin_device_bytes() {
  return Memory::all().used();
}
EXPORT size_t standin_most_device_bytes() {
  return Memory::all().most();
}
EXPORT void standin_check() {
  Streams::all().finish();
  Memory::all().check_freed();
}

EXPORT int cuInit(unsigned) {
  return setting("HEADRACE_STANDIN_DEVICES", 1) == 0 ? 100 : 0;
}
EXPORT int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(setting("HEADRACE_STANDIN_VERSION", 13000));
  return 0;
}
EXPORT int cuGetErrorName(int error, const char** name) {
  *name = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 100 ? "CUDA_ERROR_NO_DEVICE"
          : error == 201 ? "CUDA_ERROR_INVALID_CONTEXT"
          : error == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
                         : "CUDA_ERROR";
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(setting("HEADRACE_STANDIN_DEVICES", 1));
  return 0;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
EXPORT int cuDeviceGetName(char* name, int length, int) {
  std::strncpy(name, "stand-in", static_cast<size_t>(length));
  return 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : 0;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int) {
  static int one;
  *context = &one;
  return 0;
}
EXPORT int cuCtxPushCurrent_v2(void*) {
  ++contexts;
  return 0;
}
EXPORT int cuCtxPopCurrent_v2(void** context) {
  *context = nullptr;
  if (contexts == 0) return 201;
  --contexts;
  return 0;
}
EXPORT int cuCtxSynchronize() {
  NEEDS_CONTEXT;
  streams().each([](const standin::StreamPointer& stream) { Streams::all().drain(stream); });
  Streams::all().drain_apart();
  return 0;
}
EXPORT int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = static_cast<size_t>(setting("HEADRACE_STANDIN_MEMORY", 1L << 40));
  *free = *total - Memory::all().used();
  return 0;
}
EXPORT int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  NEEDS_CONTEXT;
  return Memory::all().allocate(address, bytes);
}
EXPORT int cuMemFree_v2(unsigned long long address) {
  NEEDS_CONTEXT;
  Memory::all().release(address);
  return 0;
}
EXPORT int cuMemHostRegister_v2(void* data, size_t bytes, unsigned) {
  NEEDS_CONTEXT;
  std::lock_guard lock(everything);
  registered[static_cast<char*>(data)] = bytes;
  return 0;
}
EXPORT int cuMemHostUnregister(void* data) {
  NEEDS_CONTEXT;
  std::lock_guard lock(everything);
  return registered.erase(static_cast<char*>(data)) == 1 ? 0 : 1;
}
EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes,
                                void* stream) {
  NEEDS_CONTEXT;
  if (bytes == 0) return 0;
  if (!Memory::all().holds(to, bytes)) return 1;
  const uint64_t was = standin::checksum(from, bytes);
  const auto copy = [=] {
    if (!Memory::all().holds(to, bytes)) fault("a copy to device memory that was freed meanwhile");
    if (standin::checksum(from, bytes) != was)
      fault("host memory was written before the device had copied it");
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  };
  Streams::all().add(stream_of(stream, "cuMemcpyHtoDAsync"), {copy, nullptr, nullptr, 0});
  return 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  NEEDS_CONTEXT;
  if (bytes == 0) return 0;
  if (!Memory::all().holds(from, bytes)) return 1;
  const auto copy = [=] {
    if (!Memory::all().holds(from, bytes))
      fault("a copy of device memory that was freed meanwhile");
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  };
  Streams::all().add(stream_of(stream, "cuMemcpyDtoHAsync"), {copy, nullptr, nullptr, 0});
  return 0;
}
EXPORT int cuStreamCreate(void** stream, unsigned) {
  NEEDS_CONTEXT;
  *stream = streams().add(Streams::all().make());
  return 0;
}
EXPORT int cuStreamDestroy_v2(void* stream) {
  if (contexts == 0) return 201;
  Streams::all().destroy(streams().remove(stream, "cuStreamDestroy"));
  return 0;
}
EXPORT int cuStreamSynchronize(void* stream) {
  NEEDS_CONTEXT;
  Streams::all().drain(stream_of(stream, "cuStreamSynchronize"));
  return 0;
}
EXPORT int cuEventCreate(void** event, unsigned) {
  NEEDS_CONTEXT;
  *event = events().add(std::make_shared<standin::Event>());
  return 0;
}
EXPORT int cuEventDestroy_v2(void* event) {
  if (contexts == 0) return 201;
  events().remove(event, "cuEventDestroy");
  return 0;
}
EXPORT int cuEventRecord(void* event, void* stream) {
  NEEDS_CONTEXT;
  Streams::all().add(stream_of(stream, "cuEventRecord"),
                     {nullptr, events().at(event, "cuEventRecord"), nullptr, 0});
  return 0;
}
EXPORT int cuEventQuery(void* event) {
  NEEDS_CONTEXT;
  return Streams::all().is_past(events().at(event, "cuEventQuery")) ? 0 : 600;
}
EXPORT int cuEventSynchronize(void* event) {
  NEEDS_CONTEXT;
  Streams::all().wait(events().at(event, "cuEventSynchronize"));
  return 0;
}
EXPORT int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  NEEDS_CONTEXT;
  Streams::all().add(stream_of(stream, "cuStreamWaitEvent"),
                     {nullptr, nullptr, events().at(event, "cuStreamWaitEvent"), 0});
  return 0;
}
EXPORT int cuModuleLoadData(void** module, const void* image) {
  NEEDS_CONTEXT;
  *module = const_cast<void*>(image);
  return std::memcmp(image, "stand-in", 8) == 0 ? 0 : 209;
}

// The device would say CUDA_ERROR_ILLEGAL_ADDRESS, later.
static void check_addresses(const Job& job, const Output& out) {
  if (!Memory::all().holds(job.plane[0], 1))
    fault("a kernel reads pixels that are no memory of the device");
  if (!Memory::all().holds(out.address, 1))
    fault("a kernel writes where no memory of the device is");
}

EXPORT int cuModuleGetFunction(void** function, void*, const char* name) {
  static const std::map<std::string, int> known{
      {"weigh", 1}, {"first_pass", 2}, {"second_pass", 3}};
  const auto at = known.find(name);
  if (at == known.end()) return 500;
  *function = reinterpret_cast<void*>(static_cast<intptr_t>(at->second));
  return 0;
}
EXPORT int cuLaunchKernel(void* function, unsigned, unsigned grid_y, unsigned grid_z, unsigned,
                          unsigned, unsigned, unsigned, void* stream, void** parameters, void**) {
  NEEDS_CONTEXT;
  ++launches;
  const auto which = reinterpret_cast<intptr_t>(function);
  const auto address = *static_cast<unsigned long long*>(parameters[0]);
  const Job* jobs = reinterpret_cast<const Job*>(address);
  const int channels = which == 2 ? *static_cast<int*>(parameters[1]) : 0;
  const Output out = which == 3 ? *static_cast<Output*>(parameters[1]) : Output{};
  const auto kernel = [=] {
    if (!Memory::all().holds(address, grid_z * sizeof(Job)))
      fault("a kernel whose jobs lie in memory that was freed meanwhile");
    threadIdx = {};
    for (unsigned z = 0; z < grid_z; ++z)
      for (unsigned y = 0; y < grid_y; ++y) {
        blockIdx = {0, y, z};
        if (which == 1) weigh(jobs);
        if (which == 2) first_pass(jobs, channels);
        if (which == 3) {
          check_addresses(jobs[z], out);
          second_pass(jobs, out);
        }
      }
  };
  Streams::all().add(stream_of(stream, "cuLaunchKernel"), {kernel, nullptr, nullptr, 0, true});
  return 0;
}

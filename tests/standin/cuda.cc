// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for CUDA's driver, so that the way to the GPU is tested where there is none.  What is
// handed over happens later (streams.h); host memory is read when its turn comes, as drivers may do
// with memory of any kind, and must then hold what it held when it was named.  The kernels are
// headrace's own, compiled by the C++ compiler.
//
// HEADRACE_STANDIN_VERSION, _DEVICES, _MEMORY, _DELAY_US, _TEMPER: what it says it is; how it
// works. HEADRACE_STANDIN_LOST: after so many launches every call fails, as of a device that is
// lost.  _GRID: 1: kernels run with the blocks and threads they are launched with, 0: as one
// thread.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "kernels.h"
#include "memory.h"
#include "streams.h"

#define EXPORT extern "C" __attribute__((visibility("default")))
using standin::fault;
using standin::Memory;
using standin::setting;
using standin::Streams;

namespace {

std::mutex everything;
std::map<char*, size_t> registered;
std::atomic<long> launches{0};
std::atomic<bool> captures{false};
thread_local int contexts = 0;      // that are current in this thread
thread_local int capture_mode = 0;  // 0 global, 1 of the thread, 2 relaxed

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

bool is_lost() {
  const long lost = setting("HEADRACE_STANDIN_LOST", 0);
  return lost > 0 && launches >= lost;
}
// 0; else what a call without a context, or of a device that is lost, gives.
int status_here() {
  if (contexts == 0) return 201;
  return is_lost() ? 719 : 0;
}
#define NEEDS_CONTEXT \
  if (const int status = status_here(); status != 0) return status
// Calls that break the capture of a graph, of whichever thread it is.
#define IS_UNSAFE                                                         \
  if (captures && capture_mode != 2)                                      \
  fault(std::string(__func__) +                                           \
        ": while a graph is captured, by a thread that did not say that " \
        "it has nothing to do with it")

}  // namespace

// For the stand-in of nvJPEG.
EXPORT void standin_add(void* stream, const std::function<void()>& work) {
  const auto unless_lost = [work] {
    if (!is_lost()) work();
  };
  Streams::all().add(stream_of(stream, "nvJPEG"), {unless_lost, nullptr, nullptr, 0});
}
EXPORT void standin_add_apart(const std::function<void()>& work) {
  Streams::all().add_apart(work);
}
EXPORT bool standin_has_context() {
  return contexts > 0;
}
EXPORT bool standin_holds(const void* address, size_t bytes) {
  return Memory::all().holds(reinterpret_cast<unsigned long long>(address), bytes);
}
// For tests: someone begins, or ends, to capture a graph.
EXPORT void standin_capture(bool on) {
  captures = on;
}
EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
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
  Memory::all().check();
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
  IS_UNSAFE;
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
  IS_UNSAFE;
  NEEDS_CONTEXT;
  return Memory::all().allocate(address, bytes);
}
EXPORT int cuMemFree_v2(unsigned long long address) {
  IS_UNSAFE;
  NEEDS_CONTEXT;
  Memory::all().release(address);
  return 0;
}
EXPORT int cuMemHostRegister_v2(void* data, size_t bytes, unsigned) {
  IS_UNSAFE;
  NEEDS_CONTEXT;
  std::lock_guard lock(everything);
  registered[static_cast<char*>(data)] = bytes;
  return 0;
}
EXPORT int cuMemHostUnregister(void* data) {
  IS_UNSAFE;
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
    if (is_lost()) return;
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
  IS_UNSAFE;
  if (contexts == 0) return 201;
  Streams::all().drain(stream_of(stream, "cuStreamSynchronize"));
  return status_here();
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
  IS_UNSAFE;
  if (contexts == 0) return 201;
  if (is_lost()) Streams::all().wait(events().at(event, "cuEventQuery"));
  NEEDS_CONTEXT;
  return Streams::all().is_past(events().at(event, "cuEventQuery")) ? 0 : 600;
}
EXPORT int cuEventSynchronize(void* event) {
  IS_UNSAFE;
  if (contexts == 0) return 201;
  Streams::all().wait(events().at(event, "cuEventSynchronize"));
  return status_here();
}
EXPORT int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  NEEDS_CONTEXT;
  Streams::all().add(stream_of(stream, "cuStreamWaitEvent"),
                     {nullptr, nullptr, events().at(event, "cuStreamWaitEvent"), 0});
  return 0;
}
EXPORT int cuModuleLoadData(void** module, const void* image) {
  IS_UNSAFE;
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
  if (!Memory::all().holds(job.changes, static_cast<size_t>(job.change_count) * sizeof(Change)))
    fault("a kernel reads changes that are no memory of the device");
}

EXPORT int cuModuleGetFunction(void** function, void*, const char* name) {
  static const std::map<std::string, int> known{{"weigh", 1},       {"first_pass", 2},
                                                {"second_pass", 3}, {"gray_sums", 4},
                                                {"mix", 5},         {"colours", 6}};
  const auto at = known.find(name);
  if (at == known.end()) return 500;
  *function = reinterpret_cast<void*>(static_cast<intptr_t>(at->second));
  return 0;
}

// What a kernel was told, copied when it was launched.
struct Launch {
  intptr_t which = 0;
  unsigned long long jobs = 0;
  int number = 0;  // channels of the pixels, the round of sums
  Output out{};
  Mixing mixing{};
};

static void check(const Launch& launch, unsigned pictures) {
  if (launch.which == 5) {
    if (!Memory::all().holds(launch.mixing.from, 1) || !Memory::all().holds(launch.mixing.to, 1))
      fault("pictures are mixed in memory that was freed meanwhile");
    return;
  }
  if (!Memory::all().holds(launch.jobs, pictures * sizeof(Job)))
    fault("a kernel whose jobs lie in memory that was freed meanwhile");
  if (launch.which == 3 || launch.which == 4)
    for (unsigned z = 0; z < pictures; ++z)
      check_addresses(reinterpret_cast<const Job*>(launch.jobs)[z], launch.out);
}

EXPORT int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned,
                          void* stream, void** parameters, void**) {
  NEEDS_CONTEXT;
  // The limits of a chip.
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_y > 65535 || grid_z > 65535 ||
      block_x == 0 || block_y != 1 || block_z != 1 || block_x > 1024)
    return 1;
  ++launches;
  Launch launch;
  launch.which = reinterpret_cast<intptr_t>(function);
  if (launch.which == 5) {
    launch.mixing = *static_cast<Mixing*>(parameters[0]);
  } else {
    launch.jobs = *static_cast<unsigned long long*>(parameters[0]);
    if (launch.which == 6) launch.number = *static_cast<int*>(parameters[1]);
    if (launch.which == 3 || launch.which == 4) launch.out = *static_cast<Output*>(parameters[1]);
    if (launch.which == 4) launch.number = *static_cast<int*>(parameters[2]);
  }
  static const bool whole_grid = setting("HEADRACE_STANDIN_GRID", 0) != 0;
  const ThreeExtents grid{whole_grid ? grid_x : 1, grid_y, grid_z};
  const unsigned threads = whole_grid ? block_x : 1;
  const auto turn = static_cast<unsigned long long>(launches.load());
  const auto kernel = [=] {
    if (is_lost()) return;
    check(launch, grid_z);
    const Job* jobs = reinterpret_cast<const Job*>(launch.jobs);
    standin::run_grid(grid, threads, turn, [&] {
      if (launch.which == 1) weigh(jobs);
      if (launch.which == 2) first_pass(jobs);
      if (launch.which == 3) second_pass(jobs, launch.out);
      if (launch.which == 4) gray_sums(jobs, launch.out, launch.number);
      if (launch.which == 5) mix(launch.mixing);
      if (launch.which == 6) colours(jobs, launch.number);
    });
  };
  Streams::all().add(stream_of(stream, "cuLaunchKernel"), {kernel, nullptr, nullptr, 0, true});
  return 0;
}

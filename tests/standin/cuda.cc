// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for CUDA's driver, so that the way to the GPU is tested where there is none.  Streams
// are threads: what is handed over happens later, in order, as on a device; host memory is read
// when its turn comes, as drivers may do with memory of any kind.  The kernels are headrace's own,
// compiled by the C++ compiler.
//
// HEADRACE_STANDIN_VERSION, _DEVICES, _MEMORY, _DELAY_US: what it says it is; how long each thing
// takes.
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

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

namespace {

long setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atol(text);
}

struct Stream {
  std::mutex mu;
  std::condition_variable wakes;
  std::deque<std::function<void()>> queue;
  bool busy = false, ends = false;
  std::thread thread;

  Stream() : thread([this] { serve(); }) {}
  ~Stream() {
    {
      std::lock_guard lock(mu);
      ends = true;
      wakes.notify_all();
    }
    thread.join();
  }
  void add(std::function<void()> work) {
    std::lock_guard lock(mu);
    queue.push_back(std::move(work));
    wakes.notify_all();
  }
  void drain() {
    std::unique_lock lock(mu);
    wakes.wait(lock, [this] { return queue.empty() && !busy; });
  }
  void serve() {
    std::mt19937 random(7);
    const long delay = setting("HEADRACE_STANDIN_DELAY_US", 0);
    std::unique_lock lock(mu);
    while (true) {
      wakes.wait(lock, [this] { return ends || !queue.empty(); });
      if (queue.empty()) return;
      const auto work = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      if (delay > 0)
        std::this_thread::sleep_for(
            std::chrono::microseconds(random() % static_cast<unsigned>(delay)));
      work();
      lock.lock();
      busy = false;
      wakes.notify_all();
    }
  }
};

struct Event {
  std::mutex mu;
  std::condition_variable wakes;
  uint64_t recorded = 0, past = 0;
  uint64_t record() {
    std::lock_guard lock(mu);
    return ++recorded;
  }
  void pass(uint64_t n) {
    std::lock_guard lock(mu);
    past = std::max(past, n);
    wakes.notify_all();
  }
  void wait(uint64_t n) {
    std::unique_lock lock(mu);
    wakes.wait(lock, [&] { return past >= n; });
  }
};
// Events may be destroyed while streams still hold them.
using EventPointer = std::shared_ptr<Event>;

std::mutex everything;
std::map<char*, size_t> registered;
std::map<uint64_t, size_t> device_blocks;
size_t device_bytes = 0;

Stream& stream_of(void* handle) {
  static auto* default_stream = new Stream;
  return handle == nullptr ? *default_stream : *static_cast<Stream*>(handle);
}

}  // namespace

// For the stand-in of nvJPEG.
EXPORT void standin_add(void* stream, const std::function<void()>& work) {
  stream_of(stream).add(work);
}
// For tests: bytes of device memory in use.
EXPORT size_t standin_device_bytes() {
  std::lock_guard lock(everything);
  return device_bytes;
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
  return 0;
}
EXPORT int cuCtxPopCurrent_v2(void** context) {
  *context = nullptr;
  return 0;
}
EXPORT int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = static_cast<size_t>(setting("HEADRACE_STANDIN_MEMORY", 1L << 40));
  return 0;
}
EXPORT int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  std::lock_guard lock(everything);
  if (device_bytes + bytes > static_cast<size_t>(setting("HEADRACE_STANDIN_MEMORY", 1L << 40)))
    return 2;
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes) != 0) return 2;
  std::memset(memory, 0xa5, bytes);
  *address = reinterpret_cast<unsigned long long>(memory);
  device_blocks[*address] = bytes;
  device_bytes += bytes;
  return 0;
}
EXPORT int cuMemFree_v2(unsigned long long address) {
  std::lock_guard lock(everything);
  device_bytes -= device_blocks[address];
  device_blocks.erase(address);
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
EXPORT int cuMemHostRegister_v2(void* data, size_t bytes, unsigned) {
  std::lock_guard lock(everything);
  registered[static_cast<char*>(data)] = bytes;
  return 0;
}
EXPORT int cuMemHostUnregister(void* data) {
  std::lock_guard lock(everything);
  return registered.erase(static_cast<char*>(data)) == 1 ? 0 : 1;
}
EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes,
                                void* stream) {
  void* target = reinterpret_cast<void*>(to);
  stream_of(stream).add([=] { std::memcpy(target, from, bytes); });
  return 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  stream_of(stream).add([=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
  stream_of(stream).drain();
  return 0;
}
EXPORT int cuStreamCreate(void** stream, unsigned) {
  *stream = new Stream;
  return 0;
}
EXPORT int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return 0;
}
EXPORT int cuStreamSynchronize(void* stream) {
  stream_of(stream).drain();
  return 0;
}
EXPORT int cuEventCreate(void** event, unsigned) {
  *event = new EventPointer(std::make_shared<Event>());
  return 0;
}
EXPORT int cuEventDestroy_v2(void* event) {
  delete static_cast<EventPointer*>(event);
  return 0;
}
EXPORT int cuEventRecord(void* event, void* stream) {
  const EventPointer e = *static_cast<EventPointer*>(event);
  const uint64_t n = e->record();
  stream_of(stream).add([e, n] { e->pass(n); });
  return 0;
}
EXPORT int cuEventQuery(void* event) {
  const EventPointer e = *static_cast<EventPointer*>(event);
  std::lock_guard lock(e->mu);
  return e->past >= e->recorded ? 0 : 600;
}
EXPORT int cuEventSynchronize(void* event) {
  const EventPointer e = *static_cast<EventPointer*>(event);
  uint64_t n = 0;
  {
    std::lock_guard lock(e->mu);
    n = e->recorded;
  }
  e->wait(n);
  return 0;
}
EXPORT int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const EventPointer e = *static_cast<EventPointer*>(event);
  uint64_t n = 0;
  {
    std::lock_guard lock(e->mu);
    n = e->recorded;
  }
  stream_of(stream).add([e, n] { e->wait(n); });
  return 0;
}
EXPORT int cuModuleLoadData(void** module, const void* image) {
  *module = const_cast<void*>(image);
  return std::memcmp(image, "stand-in", 8) == 0 ? 0 : 209;
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
  const auto which = reinterpret_cast<intptr_t>(function);
  const Job* jobs = reinterpret_cast<const Job*>(*static_cast<unsigned long long*>(parameters[0]));
  const int channels = which == 2 ? *static_cast<int*>(parameters[1]) : 0;
  const Output out = which == 3 ? *static_cast<Output*>(parameters[1]) : Output{};
  stream_of(stream).add([=] {
    threadIdx = {};
    for (unsigned z = 0; z < grid_z; ++z)
      for (unsigned y = 0; y < grid_y; ++y) {
        blockIdx = {0, y, z};
        if (which == 1) weigh(jobs);
        if (which == 2) first_pass(jobs, channels);
        if (which == 3) second_pass(jobs, out);
      }
  });
  return 0;
}

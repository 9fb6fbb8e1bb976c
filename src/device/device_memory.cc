// SPDX-License-Identifier: Apache-2.0
#include "device/device_memory.h"

#include <new>
#include <stdexcept>

namespace headrace {
namespace {

constexpr unsigned kNoTiming =
    3;  // CU_EVENT_DISABLE_TIMING, and waiting threads sleep (CU_EVENT_BLOCKING_SYNC)
constexpr unsigned kPortable = 1;  // CU_MEMHOSTREGISTER_PORTABLE
constexpr size_t kDeviceAlignment = 256;

// Addresses of the device, dressed as pointers: nobody follows them here.
class DeviceArena final : public Arena {
 public:
  DeviceArena(const CudaDriver& driver, CudaContext context) : driver_(driver), context_(context) {}
  MemoryBlock allocate(size_t bytes, size_t) override {
    const CudaCurrent current(driver_, context_);
    CudaAddress address = 0;
    if (driver_.memory_allocate(&address, bytes) != 0) throw std::bad_alloc();
    return {reinterpret_cast<std::byte*>(address), bytes};
  }
  void release(MemoryBlock memory) override {
    const CudaCurrent current(driver_, context_);
    driver_.memory_free(reinterpret_cast<CudaAddress>(memory.data));
  }
  ArenaKind kind() const override { return ArenaKind::kHeap; }
  size_t alignment() const override { return kDeviceAlignment; }

 private:
  const CudaDriver& driver_;
  const CudaContext context_;
};

}  // namespace

Result<std::shared_ptr<CudaEvent>> CudaEvent::make(const CudaDriver& driver, CudaContext context) {
  const CudaCurrent current(driver, context);
  CudaEventHandle event = nullptr;
  HEADRACE_TRY(driver.check(driver.event_create(&event, kNoTiming), "cuEventCreate"));
  return std::shared_ptr<CudaEvent>(new CudaEvent(driver, context, event));
}

CudaEvent::~CudaEvent() {
  const CudaCurrent current(driver_, context_);
  driver_.event_destroy(event_);
}

Status CudaEvent::record(CudaStream stream) const {
  const CudaCurrent current(driver_, context_);
  return driver_.check(driver_.event_record(event_, stream), "cuEventRecord");
}

bool CudaEvent::is_past() const {
  const CudaCurrent current(driver_, context_);
  return driver_.event_query(event_) != kCudaNotReady;
}

Status CudaEvent::wait() const {
  const CudaCurrent current(driver_, context_);
  return driver_.check(driver_.event_synchronize(event_), "cuEventSynchronize");
}

Status CudaEvent::hold_up(CudaStream stream) const {
  const CudaCurrent current(driver_, context_);
  return driver_.check(driver_.stream_wait_event(stream, event_, 0), "cuStreamWaitEvent");
}

Result<StreamPointer> DeviceStream::make(const CudaDriver& driver, CudaContext context) {
  constexpr unsigned kApart = 1;  // CU_STREAM_NON_BLOCKING: does not wait for the default stream
  const CudaCurrent current(driver, context);
  CudaStream stream = nullptr;
  HEADRACE_TRY(driver.check(driver.stream_create(&stream, kApart), "cuStreamCreate"));
  return StreamPointer(new DeviceStream(driver, context, stream, true));
}

DeviceStream::~DeviceStream() {
  if (!own_) return;
  const CudaCurrent current(driver_, context_);
  driver_.stream_destroy(stream_);
}

class DeviceMemory::Return {
 public:
  Return(std::shared_ptr<DeviceMemory> memory, StreamPointer stream)
      : memory_(std::move(memory)), used_(std::make_shared<Used>(std::move(stream))) {}
  void operator()(Buffer* buffer) const {
    memory_->give_back(std::unique_ptr<Buffer>(buffer), used_->stream());
  }
  void consumed_in(CudaStream stream) const {
    used_->set(DeviceStream::borrowed(memory_->driver_, stream));
  }
  void consumed_anywhere() const { used_->set(nullptr); }

 private:
  // In which stream the buffer is used last; null: nobody knows.  Thread-safe.
  class Used {
   public:
    explicit Used(StreamPointer stream) : stream_(std::move(stream)) {}
    StreamPointer stream() const {
      MutexLock lock(mu_);
      return stream_;
    }
    void set(StreamPointer stream) {
      MutexLock lock(mu_);
      stream_.swap(stream);  // the one before goes without the lock
    }

   private:
    mutable Mutex mu_;
    StreamPointer stream_ HEADRACE_GUARDED_BY(mu_);
  };
  std::shared_ptr<DeviceMemory> memory_;
  std::shared_ptr<Used> used_;
};

DeviceMemory::DeviceMemory(const CudaDriver& driver, CudaContext context, uint64_t keep_bytes)
    : driver_(driver),
      context_(context),
      keep_bytes_(keep_bytes),
      arena_(std::make_shared<DeviceArena>(driver, context)) {}

std::shared_ptr<DeviceMemory> DeviceMemory::make(const CudaDriver& driver, CudaContext context,
                                                 uint64_t keep_bytes) {
  return std::shared_ptr<DeviceMemory>(new DeviceMemory(driver, context, keep_bytes));
}

// The one that has been idle longest among those of a fitting size.
bool DeviceMemory::find(size_t bytes, Free& out) {
  for (auto it = idle_.begin(); it != idle_.end(); ++it) {
    const size_t capacity = it->buffer->capacity();
    if (capacity < bytes || capacity > 2 * bytes + (1 << 20)) continue;
    idle_bytes_ -= it->buffer->held_bytes();
    out = std::move(*it);
    idle_.erase(it);
    return true;
  }
  return false;
}

void DeviceMemory::free_idle(uint64_t keep) {
  while (idle_bytes_ > keep && !idle_.empty()) {
    idle_bytes_ -= idle_.front().buffer->held_bytes();
    if (idle_.front().after) (void)idle_.front().after->wait();
    if (idle_.front().after_all) (void)wait_for_all();
    idle_.erase(idle_.begin());
  }
}

Result<DeviceMemory::Free> DeviceMemory::choose(size_t bytes) {
  Free got;
  MutexLock lock(mu_);
  if (find(bytes, got)) return got;
  got.buffer = std::make_unique<Buffer>(arena_);
  try {
    got.buffer->resize(bytes);
  } catch (const std::bad_alloc&) {
    free_idle(0);
    try {
      got.buffer->resize(bytes);
    } catch (const std::bad_alloc&) {
      return exhausted("no memory on the GPU for " + std::to_string(bytes >> 20) +
                       " MiB of a batch; make the batch or the model smaller");
    }
  }
  return got;
}

SharedBuffer DeviceMemory::lend(Free got, size_t bytes, const StreamPointer& stream) {
  MutexLock lock(mu_);
  got.buffer->resize(bytes);
  used_ += got.buffer->held_bytes();
  most_used_ = std::max(most_used_, used_);
  return SharedBuffer(got.buffer.release(), Return(shared_from_this(), stream));
}

Result<SharedBuffer> DeviceMemory::take(size_t bytes, const StreamPointer& stream) {
  HEADRACE_ASSIGN(Free got, choose(bytes));
  if (got.after) HEADRACE_TRY(got.after->hold_up(stream->handle()));
  if (got.after_all) HEADRACE_TRY(wait_for_all());
  return lend(std::move(got), bytes, stream);
}

Result<SharedBuffer> DeviceMemory::take_idle(size_t bytes, const StreamPointer& stream) {
  HEADRACE_ASSIGN(Free got, choose(bytes));
  if (got.after) HEADRACE_TRY(got.after->wait());
  if (got.after_all) HEADRACE_TRY(wait_for_all());
  return lend(std::move(got), bytes, stream);
}

void DeviceMemory::consumed_in(const SharedBuffer& buffer, CudaStream stream) {
  if (const auto* back = std::get_deleter<Return>(buffer); back != nullptr)
    back->consumed_in(stream);
}

void DeviceMemory::consumed_anywhere(const SharedBuffer& buffer) {
  if (const auto* back = std::get_deleter<Return>(buffer); back != nullptr)
    back->consumed_anywhere();
}

Status DeviceMemory::wait_for_all() const {
  const CudaCurrent current(driver_, context_);
  return driver_.check(driver_.context_synchronize(), "cuCtxSynchronize");
}

void DeviceMemory::give_back(std::unique_ptr<Buffer> buffer, const StreamPointer& stream) {
  Free back;
  bool usable = true;
  if (stream) {
    auto after = CudaEvent::make(driver_, context_);
    usable = after.ok() && after.value()->record(stream->handle()).ok();
    if (usable) back.after = std::move(after).value();
  } else {
    back.after_all = true;
  }
  MutexLock lock(mu_);
  const uint64_t held = buffer->held_bytes();
  used_ -= held;
  // Without an event nobody can tell when it may be written again: the driver waits and frees it.
  if (!usable) return;
  idle_bytes_ += held;
  back.buffer = std::move(buffer);
  idle_.push_back(std::move(back));
  free_idle(keep_bytes_);
}

uint64_t DeviceMemory::used_bytes() const {
  MutexLock lock(mu_);
  return used_;
}

uint64_t DeviceMemory::most_used_bytes() const {
  MutexLock lock(mu_);
  return most_used_;
}

std::shared_ptr<Arena> pinned_arena_of(const CudaDriver& driver, CudaContext context) {
  return pinned_slab_arena({.lock =
                                [&driver, context](MutableBytes memory) {
                                  const CudaCurrent current(driver, context);
                                  const Status locked = driver.check(
                                      driver.host_register(memory.data(), memory.size(), kPortable),
                                      "cuMemHostRegister");
                                  // A device that is lost is no lack of memory, and says so itself.
                                  if (!locked.ok() && locked.code() != Code::kExhausted)
                                    throw std::runtime_error(std::string(locked.message()));
                                  return locked.ok();
                                },
                            .unlock =
                                [&driver, context](MutableBytes memory) {
                                  const CudaCurrent current(driver, context);
                                  driver.host_unregister(memory.data());
                                }});
}

}  // namespace headrace

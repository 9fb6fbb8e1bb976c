// SPDX-License-Identifier: Apache-2.0
//
// DeviceMemory: memory of a GPU that goes round.  A buffer comes back when its last owner lets go,
// often Python, while kernels of the consumer that read it may still be waiting in the consumer's
// stream: then whoever gets it next waits, in its stream, until that stream has got so far.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "batch/buffer_pool.h"
#include "batch/device.h"
#include "device/driver.h"

namespace headrace {

// An event of the device.  Thread-safe.
class CudaEvent final : public ReadyEvent {
 public:
  static Result<std::shared_ptr<CudaEvent>> make(const CudaDriver& driver, CudaContext context);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  Status record(CudaStream stream) const;
  bool is_past() const;
  Status wait() const override;
  // The stream goes on only after it.
  Status hold_up(CudaStream stream) const;
  void* handle() const override { return event_; }

 private:
  CudaEvent(const CudaDriver& driver, CudaContext context, CudaEventHandle event)
      : driver_(driver), context_(context), event_(event) {}
  const CudaDriver& driver_;
  const CudaContext context_;
  const CudaEventHandle event_;
};

// A stream, as long as someone may still use it: buffers outlive the stage whose stream wrote them,
// and record an event in it when they come back.  Immutable, hence thread-safe.
class DeviceStream {
 public:
  static Result<std::shared_ptr<const DeviceStream>> make(const CudaDriver& driver,
                                                          CudaContext context);
  // One of the consumer's, who keeps it.
  static std::shared_ptr<const DeviceStream> borrowed(const CudaDriver& driver, CudaStream stream) {
    return std::shared_ptr<const DeviceStream>(new DeviceStream(driver, nullptr, stream, false));
  }
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  CudaStream handle() const { return stream_; }

 private:
  DeviceStream(const CudaDriver& driver, CudaContext context, CudaStream stream, bool own)
      : driver_(driver), context_(context), stream_(stream), own_(own) {}
  const CudaDriver& driver_;
  const CudaContext context_;
  const CudaStream stream_;
  const bool own_;
};
using StreamPointer = std::shared_ptr<const DeviceStream>;

// Thread-safe.  Buffers may outlive it.
class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
 public:
  // Keeps at most `keep_bytes` that nobody uses.
  static std::shared_ptr<DeviceMemory> make(const CudaDriver& driver, CudaContext context,
                                            uint64_t keep_bytes);

  // data() is an address of the device.  What the stream does from now on may write it.
  Result<SharedBuffer> take(size_t bytes, const StreamPointer& stream);
  // The same, for writers that do not keep to the order of the stream: when it returns, the device
  // has done all that read or wrote the buffer before.
  Result<SharedBuffer> take_idle(size_t bytes, const StreamPointer& stream);
  // Whoever consumes the buffer does so in this stream.
  static void consumed_in(const SharedBuffer& buffer, CudaStream stream);
  // Nobody knows in which streams: whoever gets the memory next waits for all of the device's work.
  static void consumed_anywhere(const SharedBuffer& buffer);
  uint64_t used_bytes() const;
  uint64_t most_used_bytes() const;

 private:
  struct Free {
    std::unique_ptr<Buffer> buffer;
    std::shared_ptr<CudaEvent> after;  // null: now
    bool after_all = false;            // not before all that the device was told until it is taken
  };
  class Return;  // what a buffer does when its last owner lets go
  DeviceMemory(const CudaDriver& driver, CudaContext context, uint64_t keep_bytes);
  void give_back(std::unique_ptr<Buffer> buffer, const StreamPointer& stream);
  Status wait_for_all() const;
  Result<Free> choose(size_t bytes) HEADRACE_EXCLUDES(mu_);
  SharedBuffer lend(Free got, size_t bytes, const StreamPointer& stream) HEADRACE_EXCLUDES(mu_);
  void free_idle(uint64_t keep) HEADRACE_REQUIRES(mu_);
  bool find(size_t bytes, Free& out) HEADRACE_REQUIRES(mu_);

  const CudaDriver& driver_;
  const CudaContext context_;
  const uint64_t keep_bytes_;
  const std::shared_ptr<Arena> arena_;
  mutable Mutex mu_;
  std::vector<Free> idle_ HEADRACE_GUARDED_BY(mu_);  // the longest idle first
  uint64_t idle_bytes_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t used_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t most_used_ HEADRACE_GUARDED_BY(mu_) = 0;
};

// Host memory that the device copies from by itself.
std::shared_ptr<Arena> pinned_arena_of(const CudaDriver& driver, CudaContext context);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Device memory of the stand-in for CUDA's driver: heap, filled with 0xa5 when it is given, and
// with 0xdb when it is freed, with a red zone before and behind it.  Freed blocks are kept a while,
// and whoever writes one, or a red zone, ends the process; under AddressSanitizer the heap has red
// zones of its own, and blocks are freed, which tells of readers too.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "streams.h"

namespace standin {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kKeepsFreed = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kKeepsFreed = false;
#else
inline constexpr bool kKeepsFreed = true;
#endif
#else
inline constexpr bool kKeepsFreed = true;
#endif
// At each side.  Whole multiples of 256, as addresses of devices are.
inline constexpr size_t kRedZone = kKeepsFreed ? 4096 : 0;

class Memory {
 public:
  static Memory& all() {
    static auto* memory = new Memory;
    return *memory;
  }

  // CUDA's status.
  int allocate(unsigned long long* address, size_t bytes) {
    const std::lock_guard lock(mu_);
    if (bytes == 0) return 1;
    if (used_ + bytes > static_cast<size_t>(setting("HEADRACE_STANDIN_MEMORY", 1L << 40))) return 2;
    void* whole = nullptr;
    if (posix_memalign(&whole, 256, bytes + 2 * kRedZone) != 0) return 2;
    auto* memory = static_cast<unsigned char*>(whole) + kRedZone;
    std::memset(whole, 0xc9, kRedZone);
    std::memset(memory, 0xa5, bytes);
    std::memset(memory + bytes, 0xc9, kRedZone);
    *address = reinterpret_cast<unsigned long long>(memory);
    blocks_[*address] = bytes;
    used_ += bytes;
    most_ = std::max(most_, used_);
    return 0;
  }

  void release(unsigned long long address) {
    const std::lock_guard lock(mu_);
    const auto at = blocks_.find(address);
    if (at == blocks_.end()) fault("cuMemFree: memory that is not the device's, or freed already");
    auto* memory = reinterpret_cast<unsigned char*>(address);
    const size_t bytes = at->second;
    used_ -= bytes;
    blocks_.erase(at);
    check_red_zones(memory, bytes);
    std::memset(memory, 0xdb, bytes);
    if (!kKeepsFreed) return std::free(memory - kRedZone);
    freed_.push_back({memory, bytes});
    freed_bytes_ += bytes;
    while (freed_bytes_ > (64u << 20)) drop();
  }

  // Whether all of it lies in one block that is allocated now.
  bool holds(unsigned long long address, size_t bytes) {
    const std::lock_guard lock(mu_);
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return false;
    const auto& [begin, size] = *std::prev(after);
    return address + bytes <= begin + size;
  }

  // Ends the process where freed memory or a red zone was written.
  void check() {
    const std::lock_guard lock(mu_);
    for (const auto& [address, bytes] : blocks_)
      check_red_zones(reinterpret_cast<const unsigned char*>(address), bytes);
    while (!freed_.empty()) drop();
  }

  size_t used() {
    const std::lock_guard lock(mu_);
    return used_;
  }
  size_t most() {
    const std::lock_guard lock(mu_);
    return most_;
  }

 private:
  struct Freed {
    unsigned char* memory;
    size_t bytes;
  };

  void drop() {
    const Freed oldest = freed_.front();
    freed_.pop_front();
    freed_bytes_ -= oldest.bytes;
    for (size_t i = 0; i < oldest.bytes; ++i)
      if (oldest.memory[i] != 0xdb) fault("device memory was written after it was freed");
    std::free(oldest.memory - kRedZone);
  }

  static void check_red_zones(const unsigned char* memory, size_t bytes) {
    for (size_t i = 0; i < kRedZone; ++i) {
      if (memory[bytes + i] != 0xc9) fault("something wrote past the end of device memory");
      if (*(memory - 1 - i) != 0xc9) fault("something wrote before the begin of device memory");
    }
  }

  std::mutex mu_;
  std::map<unsigned long long, size_t> blocks_;
  std::deque<Freed> freed_;
  size_t freed_bytes_ = 0, used_ = 0, most_ = 0;
};

// What host memory holds now: a copy that runs later must find the same.
inline uint64_t checksum(const void* data, size_t bytes) {
  uint64_t sum = 1469598103934665603u;
  const auto* at = static_cast<const unsigned char*>(data);
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    sum = (sum ^ word) * 1099511628211u;
    sum ^= sum >> 29;
  }
  for (; bytes > 0; ++at, --bytes) sum = (sum ^ *at) * 1099511628211u;
  return sum;
}

}  // namespace standin

// SPDX-License-Identifier: Apache-2.0
//
// DecodeShare: which pictures are left to a device's own decoder, and which the CPU's threads
// decode, by what each was measured to take.
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "codec/jpeg_layout.h"

namespace headrace {

// What was measured; 0 where nothing was yet.
struct DecodeRates {
  double device_seconds = 0;  // a picture, with the device at work
  double cpu_seconds = 0;     // a picture, of one thread
};

// When threads of the CPU decode pictures that the device could.  They are there for bringing it
// pictures, which takes about 0.1 ms of a processor each where decoding takes 1: a thread that
// decodes although the device has little to do makes both slower.
struct ShareLimits {
  int64_t least_waiting = 0;  // the device has at least so many pictures before it: batches
  int threads = 0;            // that decode at a time, at most; 0: the device decodes all it can
};

// Whether the CPU should decode the next picture itself: where `waiting` pictures are enough, and
// keep the device at work for longer than a thread takes for this one.  Then the device is never
// without work meanwhile.
bool cpu_takes_next(int64_t waiting, const DecodeRates& rates, int64_t least_waiting);

// Shared by the decoders of a field and the stage that follows.  Thread-safe.
class DecodeShare {
 public:
  // `samplings`: those that the device decodes, a bit each (1 << JpegSampling).
  DecodeShare(unsigned samplings, ShareLimits limits) : samplings_(samplings), limits_(limits) {}

  // Whether the device takes this one.
  bool leave_to_device(JpegSampling sampling) HEADRACE_EXCLUDES(mu_);
  // By the stage: what it has been given, and what the device has done.  Pictures of batches that
  // never come to the stage do not count.
  void handed_over(int64_t pictures, uint64_t now_ns) HEADRACE_EXCLUDES(mu_);
  void finished(int64_t pictures, uint64_t now_ns) HEADRACE_EXCLUDES(mu_);
  // By the decoders: the CPU begins a picture; it made one, and that took so long, or it could not.
  void begins_on_cpu() HEADRACE_EXCLUDES(mu_);
  void decoded_on_cpu(uint64_t took_ns) HEADRACE_EXCLUDES(mu_);
  void failed_on_cpu() HEADRACE_EXCLUDES(mu_);

  uint64_t on_device() const HEADRACE_EXCLUDES(mu_);
  uint64_t on_cpu() const HEADRACE_EXCLUDES(mu_);
  DecodeRates rates() const HEADRACE_EXCLUDES(mu_);

 private:
  DecodeRates rates_now() const HEADRACE_REQUIRES(mu_);

  const unsigned samplings_;
  const ShareLimits limits_;
  mutable Mutex mu_;
  int threads_on_cpu_ HEADRACE_GUARDED_BY(mu_) = 0;
  int64_t waiting_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t busy_since_ns_ HEADRACE_GUARDED_BY(mu_) = 0;  // with waiting_ > 0
  // Sums in which what is older counts ever less.
  double device_ns_ HEADRACE_GUARDED_BY(mu_) = 0, device_pictures_ HEADRACE_GUARDED_BY(mu_) = 0;
  double cpu_ns_ HEADRACE_GUARDED_BY(mu_) = 0, cpu_pictures_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t on_device_ HEADRACE_GUARDED_BY(mu_) = 0, on_cpu_ HEADRACE_GUARDED_BY(mu_) = 0;
};

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "codec/decode_share.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr double kRemembered = 4096;  // pictures: half a second of a chip's work

// Adds to the sums; of more than kRemembered pictures each counts less.
void add(double ns, double pictures, double& sum_ns, double& sum_pictures) {
  sum_ns += ns;
  sum_pictures += pictures;
  if (sum_pictures <= kRemembered) return;
  sum_ns *= kRemembered / sum_pictures;
  sum_pictures = kRemembered;
}

}  // namespace

bool cpu_takes_next(int64_t waiting, const DecodeRates& rates, int64_t least_waiting) {
  if (waiting < least_waiting) return false;
  if (rates.device_seconds <= 0 || rates.cpu_seconds <= 0) return true;
  return static_cast<double>(waiting) * rates.device_seconds > rates.cpu_seconds;
}

bool DecodeShare::leave_to_device(JpegSampling sampling) {
  if ((samplings_ >> static_cast<unsigned>(sampling) & 1u) == 0) return false;
  MutexLock lock(mu_);
  if (threads_on_cpu_ < limits_.threads &&
      cpu_takes_next(waiting_, rates_now(), limits_.least_waiting))
    return false;
  ++on_device_;
  return true;
}

void DecodeShare::handed_over(int64_t pictures, uint64_t now_ns) {
  MutexLock lock(mu_);
  if (waiting_ == 0) busy_since_ns_ = now_ns;
  waiting_ += pictures;
}

void DecodeShare::finished(int64_t pictures, uint64_t now_ns) {
  MutexLock lock(mu_);
  const uint64_t busy = now_ns > busy_since_ns_ ? now_ns - busy_since_ns_ : 0;
  add(static_cast<double>(busy), static_cast<double>(pictures), device_ns_, device_pictures_);
  busy_since_ns_ = std::max(busy_since_ns_, now_ns);
  waiting_ -= pictures;
}

void DecodeShare::begins_on_cpu() {
  MutexLock lock(mu_);
  ++threads_on_cpu_;
}

void DecodeShare::failed_on_cpu() {
  MutexLock lock(mu_);
  --threads_on_cpu_;
}

void DecodeShare::decoded_on_cpu(uint64_t took_ns) {
  MutexLock lock(mu_);
  --threads_on_cpu_;
  ++on_cpu_;
  add(static_cast<double>(took_ns), 1, cpu_ns_, cpu_pictures_);
}

DecodeRates DecodeShare::rates_now() const {
  return {.device_seconds = device_pictures_ > 0 ? device_ns_ / device_pictures_ / 1e9 : 0,
          .cpu_seconds = cpu_pictures_ > 0 ? cpu_ns_ / cpu_pictures_ / 1e9 : 0};
}

uint64_t DecodeShare::on_device() const {
  MutexLock lock(mu_);
  return on_device_;
}

uint64_t DecodeShare::on_cpu() const {
  MutexLock lock(mu_);
  return on_cpu_;
}

DecodeRates DecodeShare::rates() const {
  MutexLock lock(mu_);
  return rates_now();
}

}  // namespace headrace

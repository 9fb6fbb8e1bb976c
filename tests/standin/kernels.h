// SPDX-License-Identifier: Apache-2.0
//
// headrace's kernels (src/device/pictures.cu) for the CPU: what CUDA has and C++ has not, and a
// launch that runs every thread of every block, one after the other in an order that changes.
// Kernels in which no thread waits for another give the same in any order, or are wrong.
#pragma once

#include <cmath>
#include <cstring>
#include <numeric>

#define __device__
#define __global__

struct ThreeExtents {
  unsigned x = 1, y = 1, z = 1;
};
static thread_local ThreeExtents blockIdx, threadIdx, blockDim, gridDim;

static inline unsigned __float_as_uint(float f) {
  unsigned u;
  std::memcpy(&u, &f, 4);
  return u;
}
static inline float __uint_as_float(unsigned u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
static inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
static inline void atomicAdd(unsigned long long* to, unsigned long long v) {
  *to += v;  // one thread at a time
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wdouble-promotion"
#include "device/pictures.cu"
#pragma GCC diagnostic pop

namespace standin {

// Calls kernel() as each thread of the grid, the first to last in steps of some number that has no
// divisor in common with how many there are.  Blocks have one row of threads.
template <typename Kernel>
void run_grid(ThreeExtents grid, unsigned threads, unsigned long long turn, Kernel kernel) {
  gridDim = grid;
  blockDim = {threads, 1, 1};
  const unsigned long long n = 1ull * grid.x * grid.y * grid.z * threads;
  unsigned long long step = (turn * 0x9e3779b97f4a7c15ull) % n | 1;
  while (std::gcd(step, n) != 1) step += 2;
  for (unsigned long long i = 0, at = turn % n; i < n; ++i, at = (at + step) % n) {
    unsigned long long rest = at;
    threadIdx = {static_cast<unsigned>(rest % threads), 0, 0};
    rest /= threads;
    blockIdx.x = static_cast<unsigned>(rest % grid.x);
    rest /= grid.x;
    blockIdx.y = static_cast<unsigned>(rest % grid.y);
    blockIdx.z = static_cast<unsigned>(rest / grid.y);
    kernel();
  }
}

}  // namespace standin

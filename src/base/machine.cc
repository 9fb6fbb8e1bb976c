// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace headrace {
namespace {

// The numbers of a one-line kernel file; "max" and absence give no number.
bool read_numbers(const std::string& path, double* out, int count) {
  std::ifstream in(path);
  for (int i = 0; i < count; ++i)
    if (!(in >> out[i])) return false;
  return true;
}

// This process's folder in the unified hierarchy, "" for the root or cgroup v1.
std::string cgroup_path() {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("0::", 0) == 0) return line.substr(3) == "/" ? "" : line.substr(3);
  return "";
}

// The tightest value of a limit file over the process's cgroup and all above it.
template <typename Read>
double tightest(Read read) {
  double least = HUGE_VAL;
  for (std::string path = cgroup_path();; path = path.substr(0, path.rfind('/'))) {
    least = std::min(least, read("/sys/fs/cgroup" + path));
    if (path.empty()) return least;
  }
}

double cpu_quota() {
  const double v2 = tightest([](const std::string& folder) {
    double n[2];
    return read_numbers(folder + "/cpu.max", n, 2) && n[1] > 0 ? n[0] / n[1] : HUGE_VAL;
  });
  double quota = 0;
  double period = 0;
  if (read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &quota, 1) && quota > 0 &&
      read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period, 1) && period > 0)
    return std::min(v2, quota / period);
  return v2;
}

}  // namespace

int machine_cpus() {
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

int affinity_cpus() {
  // Sized for the largest machines; a fixed cpu_set_t stops at 1,024.
  constexpr int kMost = 8192;
  cpu_set_t* set = CPU_ALLOC(kMost);
  const size_t bytes = CPU_ALLOC_SIZE(kMost);
  int n = machine_cpus();
  if (set != nullptr && sched_getaffinity(0, bytes, set) == 0) n = CPU_COUNT_S(bytes, set);
  CPU_FREE(set);
  return std::max(1, n);
}

int usable_cpus() {
  const double quota = cpu_quota();
  const int mask = affinity_cpus();
  return quota < mask ? std::max(1, static_cast<int>(std::ceil(quota))) : mask;
}

uint64_t usable_memory_bytes() {
  const auto physical =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  double limit = tightest([](const std::string& folder) {
    double n = 0;
    return read_numbers(folder + "/memory.max", &n, 1) ? n : HUGE_VAL;
  });
  double v1 = 0;
  if (read_numbers("/sys/fs/cgroup/memory/memory.limit_in_bytes", &v1, 1))
    limit = std::min(limit, v1);
  return static_cast<uint64_t>(std::min(physical, limit));
}

}  // namespace headrace

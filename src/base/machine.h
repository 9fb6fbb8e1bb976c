// SPDX-License-Identifier: Apache-2.0
//
// What this process may use of the machine: the affinity mask the scheduler gave,
// cgroup quotas (v1 and v2), memory limits.
#pragma once

#include <cstdint>

namespace headrace {

// CPUs in the affinity mask, capped by the cgroup's CPU quota (rounded up); at least 1.
int usable_cpus();

// CPUs in the affinity mask alone, and in the whole machine.
int affinity_cpus();
int machine_cpus();

// Physical memory, capped by the cgroup's limit.
uint64_t usable_memory_bytes();

}  // namespace headrace

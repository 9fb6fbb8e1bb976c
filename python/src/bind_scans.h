// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "handles.h"

namespace headrace::py {

// What looks at all samples: the numbers that make views.
void bind_scans(nanobind::class_<SourceHandle>& source);

}  // namespace headrace::py

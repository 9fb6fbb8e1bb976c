// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "handles.h"

namespace headrace::py {

// Source.cached(), .cache_counts(), .cache_notices(), .wait_until_cached().
void bind_cached(nanobind::class_<SourceHandle>& source);

// Source.files(), .staged(), .stage_counts(), .stage_notices(), .wait_until_staged().
void bind_staged(nanobind::class_<SourceHandle>& source);

}  // namespace headrace::py

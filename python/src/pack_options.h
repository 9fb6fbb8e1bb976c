// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "pack/pack.h"

namespace headrace::py {

// As headrace/packing.py writes them.
PackOptions pack_options(const nanobind::dict& dict);

}  // namespace headrace::py

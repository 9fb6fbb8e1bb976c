// SPDX-License-Identifier: Apache-2.0
//
// Between Python objects and the core's plain structs.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

#include "base/bytes.h"
#include "codec/tensor.h"

namespace headrace::py {

// File names need not be UTF-8: such bytes come as Python brings them from os.fsdecode().
nanobind::object to_str(Bytes bytes);
nanobind::object to_str(std::string_view text);
nanobind::object to_bytes(Bytes bytes);

// By our name ("f32") or NumPy's ("<f4").
DType parse_dtype(std::string_view name);

}  // namespace headrace::py

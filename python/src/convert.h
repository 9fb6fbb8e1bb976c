// SPDX-License-Identifier: Apache-2.0
//
// Between Python objects and the core's plain structs.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "codec/tensor.h"
#include "loader/field.h"

namespace headrace::py {

// {output, field, what, options, steps: [(name, options)], packing, map} as headrace/fields.py
// writes it.
FieldRequest field_request(nanobind::handle spec);
std::vector<FieldRequest> field_requests(nanobind::handle specs);

// File names need not be UTF-8: such bytes come as Python brings them from os.fsdecode().
nanobind::object to_str(Bytes bytes);
nanobind::object to_str(std::string_view text);
nanobind::object to_bytes(Bytes bytes);

DType parse_dtype(std::string_view name);

}  // namespace headrace::py

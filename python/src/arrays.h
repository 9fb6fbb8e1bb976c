// SPDX-License-Identifier: Apache-2.0
//
// Arrays over the memory of buffers, for NumPy, PyTorch and JAX, without a copy.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <vector>

#include "batch/buffer_pool.h"
#include "codec/tensor.h"

namespace headrace::py {

// An array over the buffer's memory, which it keeps alive.  framework: "numpy", "torch", "jax".
nanobind::object to_array(const SharedBuffer& buffer, DType dtype,
                          const std::vector<int64_t>& shape, std::string_view framework);
// Of bytes that are 0 or 1.
nanobind::object bool_array(const SharedBuffer& buffer, const std::vector<int64_t>& shape,
                            std::string_view framework);
// Likewise over memory of a GPU.  framework: "torch", "jax", "cupy".
nanobind::object device_array(const SharedBuffer& buffer, DType dtype,
                              const std::vector<int64_t>& shape, std::string_view framework,
                              int device);
nanobind::object int64_array(const std::vector<int64_t>& values, const std::vector<int64_t>& shape,
                             std::string_view framework);

void bind_arrays(nanobind::module_& m);

}  // namespace headrace::py

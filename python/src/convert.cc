// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <fmt/format.h>

#include <utility>

#include "errors.h"

namespace nb = nanobind;

namespace headrace::py {
nb::object to_str(Bytes bytes) {
  return nb::steal(PyUnicode_DecodeUTF8(reinterpret_cast<const char*>(bytes.data()),
                                        static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
}

nb::object to_str(std::string_view text) {
  return to_str(as_bytes(text));
}

nb::object to_bytes(Bytes bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

DType parse_dtype(std::string_view name) {
  // As NumPy's dtype.str has it: "<f4", "|u1".
  static constexpr std::pair<std::string_view, DType> kNumpy[] = {
      {"|u1", DType::kU8},  {"|i1", DType::kI8},  {"<u2", DType::kU16}, {"<i2", DType::kI16},
      {"<u4", DType::kU32}, {"<i4", DType::kI32}, {"<u8", DType::kU64}, {"<i8", DType::kI64},
      {"<f2", DType::kF16}, {"<f4", DType::kF32}, {"<f8", DType::kF64}};
  for (const auto& [numpy, dtype] : kNumpy)
    if (numpy == name) return dtype;
  for (int d = 0; d <= static_cast<int>(DType::kF64); ++d)
    if (dtype_name(static_cast<DType>(d)) == name) return static_cast<DType>(d);
  check(invalid(fmt::format("there is no type '{}'", name)));
  return DType::kU8;
}

}  // namespace headrace::py

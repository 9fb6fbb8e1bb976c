// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include "errors.h"
#include "map.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

Param param(nb::handle value, const std::string& name) {
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
  if (PyIndex_Check(value.ptr())) {
    int64_t number = 0;
    if (!nb::try_cast<int64_t>(nb::steal(PyNumber_Index(value.ptr())), number))
      check(invalid(fmt::format("parameter '{}' is too large", name)));
    return number;
  }
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  if (PySequence_Check(value.ptr())) {
    std::vector<double> numbers;
    for (nb::handle item : value) {
      double number = 0;
      if (!nb::try_cast<double>(item, number))
        check(invalid(fmt::format("parameter '{}' holds something that is not a number", name)));
      numbers.push_back(number);
    }
    return numbers;
  }
  check(invalid(fmt::format("parameter '{}' has a type that is not understood", name)));
  return {};
}

// `where` is "field 'image', step 2 resize", for errors.
Params params(nb::handle options, const std::string& where) {
  std::map<std::string, Param> values;
  for (auto [key, value] : nb::cast<nb::dict>(options)) {
    const auto name = nb::cast<std::string>(key);
    try {
      values.emplace(name, param(value, name));
    } catch (const StatusError& e) {
      throw StatusError{e.status.with(where)};
    }
  }
  return Params(std::move(values));
}

PadNumber pad_number(nb::handle value, const std::string& where) {
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  const nb::object whole = nb::steal(PyNumber_Index(value.ptr()));
  if (!whole.is_valid()) throw nb::python_error();
  int64_t number = 0;
  if (nb::try_cast<int64_t>(whole, number)) return number;
  uint64_t large = 0;
  if (nb::try_cast<uint64_t>(whole, large)) return large;
  check(invalid(where + ": padded(value=…) takes a number of at most 64 bits"));
  return {};
}

std::optional<Packing> packing(nb::handle value) {
  if (value.is_none()) return {};
  const auto name = nb::cast<std::string>(value);
  if (name == "list") return Packing::kList;
  if (name == "padded") return Packing::kPadded;
  if (name == "ragged") return Packing::kRagged;
  return Packing::kDense;
}

}  // namespace

FieldRequest field_request(nb::handle spec) {
  const auto d = nb::cast<nb::dict>(spec);
  FieldRequest out;
  out.output = nb::cast<std::string>(d["output"]);
  out.field = nb::cast<std::string>(d["field"]);
  out.what = nb::cast<std::string>(d["what"]);
  const std::string where = fmt::format("field '{}'", out.output);
  out.options = params(d["options"], where);
  for (nb::handle step : d["steps"]) {
    const auto name = nb::cast<std::string>(step[0]);
    out.steps.push_back(
        {name, params(step[1], fmt::format("{}, step {} {}", where, out.steps.size() + 1, name))});
  }
  if (d.contains("joint")) {
    out.joint = nb::cast<std::string>(d["joint"]);
    out.leads = nb::cast<bool>(d["leads"]);
  }
  out.packing = packing(d["packing"]);
  if (d.contains("pad")) out.pad = pad_number(d["pad"], where);
  if (d.contains("many")) out.many = nb::cast<bool>(d["many"]);
  if (d.contains("map")) out.then = then_map(out.output, out.what, d["map"]);
  return out;
}

std::vector<FieldRequest> field_requests(nb::handle specs) {
  std::vector<FieldRequest> out;
  for (nb::handle spec : specs) out.push_back(field_request(spec));
  return out;
}

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
  for (int d = 0; d <= static_cast<int>(DType::kF64); ++d)
    if (dtype_name(static_cast<DType>(d)) == name) return static_cast<DType>(d);
  check(invalid(fmt::format("there is no type '{}'", name)));
  return DType::kU8;
}

}  // namespace headrace::py

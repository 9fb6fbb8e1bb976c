// SPDX-License-Identifier: Apache-2.0
//
// What is asked of a field as Python says it: every part is named and typed.  headrace/requests.py
// makes these of what users write.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "convert.h"
#include "errors.h"
#include "map.h"
#include "transform/parameters.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

using Options = nb::typed<nb::dict, nb::str, nb::object>;

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
Params params(const nb::dict& options, const std::string& where) {
  std::map<std::string, Param> values;
  for (auto [key, value] : options) {
    const auto name = nb::cast<std::string>(key);
    try {
      values.emplace(name, param(value, name));
    } catch (const StatusError& e) {
      throw StatusError{e.status.with(where)};
    }
  }
  return Params(std::move(values));
}

// `what`: "padded(value=…)" or "default="
PadNumber number_of(nb::handle value, const std::string& where, const char* what) {
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  const nb::object whole = nb::steal(PyNumber_Index(value.ptr()));
  if (!whole.is_valid()) throw nb::python_error();
  int64_t number = 0;
  if (nb::try_cast<int64_t>(whole, number)) return number;
  uint64_t large = 0;
  if (nb::try_cast<uint64_t>(whole, large)) return large;
  check(invalid(fmt::format("{}: {} takes a number of at most 64 bits", where, what)));
  return {};
}

std::optional<Packing> packing_of(const std::optional<std::string>& name) {
  if (!name) return {};
  if (*name == "list") return Packing::kList;
  if (*name == "padded") return Packing::kPadded;
  if (*name == "ragged") return Packing::kRagged;
  return Packing::kDense;
}

DefaultValue default_of(nb::handle value, const std::string& where) {
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::bytes>(value)) {
    const auto bytes = nb::cast<nb::bytes>(value);
    return std::string(bytes.c_str(), bytes.size());
  }
  nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> array;
  if (!nb::try_cast(value, array)) return number_of(value, where, "default=");
  DefaultArray out;
  out.dtype = parse_dtype(nb::cast<std::string>(value.attr("dtype").attr("str")));
  for (size_t a = 0; a < array.ndim(); ++a)
    out.shape.push_back(static_cast<int64_t>(array.shape(a)));
  const auto* data = static_cast<const std::byte*>(array.data());
  out.elements.assign(data, data + array.nbytes());
  return out;
}

void make_request(FieldRequest* self, const std::string& output, const std::string& field,
                  const std::string& what, const Options& options,
                  const std::vector<std::pair<std::string, Options>>& steps,
                  const std::optional<std::string>& packing, nb::object pad, int64_t pad_multiple,
                  bool pad_left, bool many, const std::string& joint, bool leads,
                  nb::object otherwise, bool optional, std::optional<MapFunction> map,
                  const std::string& role, size_t number) {
  new (self) FieldRequest();
  self->output = output;
  self->field = field;
  self->what = what;
  const std::string where = fmt::format("field '{}'", output);
  self->options = params(options, where);
  for (const auto& [name, values] : steps)
    self->steps.push_back(
        {name, params(values, fmt::format("{}, step {} {}", where, self->steps.size() + 1, name))});
  self->packing = packing_of(packing);
  if (!pad.is_none()) self->pad = number_of(pad, where, "padded(value=…)");
  self->pad_multiple = pad_multiple;
  self->pad_left = pad_left;
  self->many = many;
  self->joint = joint;
  self->leads = leads;
  if (!otherwise.is_none()) self->otherwise = default_of(otherwise, where);
  self->optional = optional;
  if (!map) return;
  const auto kind = role == "input"    ? MapRole::kInput
                    : role == "output" ? MapRole::kOutput
                                       : MapRole::kOnly;
  self->wrap_decoder = map_wrapper(*map, {kind, number});
}

// (name, type, default or None where it must be given, words that it may be besides)
using Parameter =
    std::tuple<std::string, std::string, std::optional<Param>, std::vector<std::string>>;

std::vector<Parameter> parameters(const std::vector<ParamInfo>& list) {
  std::vector<Parameter> out;
  for (const ParamInfo& p : list)
    out.emplace_back(p.name, std::string(p.type), p.fallback, p.words);
  return out;
}

std::vector<std::tuple<std::string, std::string, std::vector<Parameter>>> steps() {
  std::vector<std::tuple<std::string, std::string, std::vector<Parameter>>> out;
  for (const TransformEntry* step : all_transforms())
    out.emplace_back(step->name, step->doc, parameters(parameters_of(*step)));
  return out;
}

}  // namespace

void bind_fields(nb::module_& m) {
  m.def("steps", &steps,
        "(name, doc, parameters) of every step of pictures; a parameter is (name, "
        "type, default or None, words)");
  m.def(
      "array_step",
      [](const std::string& name) { return parameters(parameters_of_array_step(name)); },
      "The parameters of a step of arrays.");
  m.def(
      "field_options", [](const std::string& what) { return parameters(options_of(what)); },
      "The options of a field: \"image\", \"boxes\", …");
  nb::class_<FieldRequest>(m, "FieldRequest")
      .def("__init__", &make_request, nb::kw_only(), nb::arg("output"), nb::arg("field"),
           nb::arg("what"), nb::arg("options"), nb::arg("steps"), nb::arg("packing").none(),
           nb::arg("pad").none(), nb::arg("pad_multiple"), nb::arg("pad_left"), nb::arg("many"),
           nb::arg("joint"), nb::arg("leads"), nb::arg("default").none(), nb::arg("optional"),
           nb::arg("map").none(), nb::arg("role") = "only", nb::arg("number") = 0,
           "packing: \"list\", \"padded\", \"ragged\"; None: chosen.  default: a number, text, "
           "bytes or NumPy array; None: there is none.  role: the field is the \"only\" one of its "
           "map, or the \"input\" or \"output\" of that number.")
      .def_ro("output", &FieldRequest::output)
      .def_ro("field", &FieldRequest::field)
      .def_ro("what", &FieldRequest::what)
      .def_ro("many", &FieldRequest::many)
      .def_ro("optional", &FieldRequest::optional);
}

}  // namespace headrace::py

// SPDX-License-Identifier: Apache-2.0
#include "tree_object.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "convert.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

std::string text_of(nb::handle object) {
  const auto bytes = nb::steal<nb::bytes>(PyUnicode_EncodeFSDefault(object.ptr()));
  if (!bytes.is_valid()) throw nb::python_error();
  return {bytes.c_str(), bytes.size()};
}

// A NumPy array or number: little-endian, as it would be written.
Tree numbers_of(nb::handle object) {
  const nb::object numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("ascontiguousarray")(object);
  if (nb::cast<int64_t>(array.attr("dtype").attr("itemsize")) == 0)  // empty texts
    return to_tree(object.attr("tolist")());
  const auto shape = nb::cast<std::vector<int64_t>>(object.attr("shape"));
  array =
      array.attr("astype")(array.attr("dtype").attr("newbyteorder")("<"), nb::arg("copy") = false);
  const auto dtype = nb::cast<std::string>(array.attr("dtype").attr("str"));
  if (dtype.find('O') != std::string::npos) throw nb::type_error("an array of Python objects");
  const auto raw = nb::cast<nb::bytes>(array.attr("tobytes")());
  return Tree::numbers(dtype, shape, as_bytes(std::string_view(raw.c_str(), raw.size())));
}

nb::object array_of(const Tree& tree) {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object raw = nb::bytes(tree.elements().data(), tree.elements().size());
  const nb::object shape = nb::tuple(nb::cast(tree.shape()));
  nb::object array = numpy.attr("frombuffer")(raw, tree.text()).attr("reshape")(shape);
  return tree.shape().empty() ? array[nb::tuple()] : array.attr("copy")();
}

Tree map_of(nb::handle object) {
  Tree out = Tree::map();
  for (const auto& [name, value] : nb::borrow<nb::dict>(object))
    out.set(text_of(name), to_tree(value));
  return out;
}

Tree list_of(nb::handle object) {
  bool is_texts = nb::len(object) > 0;
  for (nb::handle item : object) is_texts = is_texts && PyUnicode_Check(item.ptr());
  if (!is_texts) {
    Tree out = Tree::list();
    for (nb::handle item : object) out.add(to_tree(item));
    return out;
  }
  std::vector<std::string> texts;
  for (nb::handle item : object) texts.push_back(text_of(item));
  return Tree::texts(std::move(texts));
}

}  // namespace

Tree to_tree(nb::handle object) {
  PyObject* o = object.ptr();
  if (object.is_none()) return {};
  if (PyBool_Check(o)) return Tree(o == Py_True);
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow != 0) throw nb::type_error("a number beyond 64 bits");
    return Tree(static_cast<int64_t>(value));
  }
  // Numbers of NumPy's keep their type; its float64 is a float too.
  if (nb::hasattr(object, "dtype") && nb::hasattr(object, "tobytes")) return numbers_of(object);
  if (PyFloat_Check(o)) return Tree(PyFloat_AsDouble(o));
  if (PyUnicode_Check(o)) return Tree(text_of(object));
  if (PyBytes_Check(o))
    return Tree::bytes(
        as_bytes(std::string_view(PyBytes_AsString(o), static_cast<size_t>(PyBytes_Size(o)))));
  if (PyDict_Check(o)) return map_of(object);
  if (PyList_Check(o) || PyTuple_Check(o)) return list_of(object);
  throw nb::type_error(
      fmt::format("a {} in a description of arrays", nb::type_name(object.type()).c_str()).c_str());
}

nb::object to_object(const Tree& tree) {
  switch (tree.type()) {
    case Tree::Type::kNull:
      return nb::none();
    case Tree::Type::kFalse:
    case Tree::Type::kTrue:
      return nb::bool_(tree.is_true());
    case Tree::Type::kInt:
      return nb::int_(tree.integer());
    case Tree::Type::kReal:
      return nb::float_(tree.real());
    case Tree::Type::kText:
      return to_str(tree.text());
    case Tree::Type::kBytes:
      return nb::bytes(tree.text().data(), tree.text().size());
    case Tree::Type::kList: {
      nb::list out;
      for (const Tree& item : tree.items()) out.append(to_object(item));
      return out;
    }
    case Tree::Type::kMap: {
      nb::dict out;
      for (size_t i = 0; i < tree.items().size(); ++i)
        out[to_str(tree.names()[i])] = to_object(tree.items()[i]);
      return out;
    }
    case Tree::Type::kTexts: {
      nb::list out;
      for (const std::string& text : tree.texts()) out.append(to_str(text));
      return out;
    }
    case Tree::Type::kNumbers:
      return array_of(tree);
  }
  return nb::none();
}

}  // namespace headrace::py

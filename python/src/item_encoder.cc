// SPDX-License-Identifier: Apache-2.0
#include "item_encoder.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <map>
#include <string>

#include "python_buffer.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

void put(std::byte*& at, uint64_t number) {
  std::memcpy(at, &number, sizeof(number));
  at += sizeof(number);
}

nb::object attribute(nb::handle object, PyObject* name) {
  return nb::steal(PyObject_GetAttr(object.ptr(), name));
}

nb::object called(nb::handle object, PyObject* method) {
  return nb::steal(PyObject_CallMethodObjArgs(object.ptr(), method, nullptr));
}

[[noreturn]] void raise(const char* why) {
  PyErr_SetString(PyExc_ValueError, why);
  throw nb::python_error();
}

}  // namespace

// Where the values of a sample lie, until they are copied.
class ItemEncoder::Values {
 public:
  explicit Values(size_t fields) { values_.reserve(fields); }
  ~Values() {
    for (Value& value : values_)
      if (value.is_buffer) PyBuffer_Release(&value.buffer);
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  void add_none() { values_.emplace_back().is_there = false; }
  void add_number(uint64_t bits) {
    Value& value = values_.emplace_back();
    value.number = bits;
    value.is_number = true;
    value.bytes = sizeof(bits);
  }
  void add(const void* data, size_t bytes, nb::object keep) {
    Value& value = values_.emplace_back();
    value.data = data;
    value.bytes = bytes;
    value.keep = std::move(keep);
  }
  // False where the object lends no memory of so many bytes, one after the other.
  bool add_buffer(nb::handle object, size_t bytes) {
    Value& value = values_.emplace_back();
    if (PyObject_GetBuffer(object.ptr(), &value.buffer, PyBUF_SIMPLE) != 0) {
      PyErr_Clear();
    } else {
      value.is_buffer = true;
      value.data = value.buffer.buf;
      value.bytes = static_cast<size_t>(value.buffer.len);
      if (value.bytes == bytes) return true;
      PyBuffer_Release(&value.buffer);
    }
    values_.pop_back();
    return false;
  }

  // Of the row that they make.
  size_t bytes() const {
    size_t out = 16 + 8 * (values_.size() + 1) + 8;
    for (const Value& value : values_) out += value.bytes + (value.is_there ? 8 : 0);
    return out;
  }
  void write(std::byte* at) const {
    uint64_t there = 0;
    for (const Value& value : values_) there += value.is_there ? 1 : 0;
    put(at, values_.size());
    put(at, there);
    uint64_t first = 0;
    put(at, first);
    for (const Value& value : values_) put(at, first += value.is_there ? 1 : 0);
    uint64_t begin = 0;
    put(at, begin);
    for (const Value& value : values_)
      if (value.is_there) put(at, begin += value.bytes);
    for (const Value& value : values_) {
      if (value.bytes > 0)
        std::memcpy(at, value.is_number ? &value.number : value.data, value.bytes);
      at += value.bytes;
    }
  }

 private:
  struct Value {
    const void* data = nullptr;
    size_t bytes = 0;
    uint64_t number = 0;
    bool is_number = false;
    bool is_there = true;
    bool is_buffer = false;
    nb::object keep;
    Py_buffer buffer;
  };
  std::vector<Value> values_;  // reserved: a Py_buffer must not move
};

ItemEncoder::ItemEncoder(nb::handle d) {
  static const std::map<std::string, Shape> shapes{
      {"tuple", Shape::kTuple}, {"dict", Shape::kDict}, {"single", Shape::kSingle}};
  static const std::map<std::string, Form> forms{{"int", Form::kInt},
                                                 {"float", Form::kFloat},
                                                 {"text", Form::kText},
                                                 {"bytes", Form::kBytes},
                                                 {"array", Form::kArray}};
  nb::list held;
  const auto hold = [&held](nb::handle h) {
    held.append(h);
    return h.ptr();
  };
  const auto shape = shapes.find(nb::cast<std::string>(d["item"]));
  shape_ = shape == shapes.end() ? Shape::kOther : shape->second;
  flatten_ = hold(d["flatten"]);
  convert_ = hold(d["convert"]);
  missing_ = hold(d["missing"]);
  numpy_array_ =
      reinterpret_cast<PyTypeObject*>(hold(nb::module_::import_("numpy").attr("ndarray")));
  if (!d["tensor"].is_none()) torch_tensor_ = reinterpret_cast<PyTypeObject*>(hold(d["tensor"]));
  const auto name = [&hold](const char* text) {
    return hold(nb::steal(PyUnicode_InternFromString(text)));
  };
  dtype_ = name("dtype");
  shape_name_ = name("shape");
  is_cpu_ = name("is_cpu");
  is_contiguous_ = name("is_contiguous");
  is_neg_ = name("is_neg");
  data_ptr_ = name("data_ptr");
  for (nb::handle f : d["fields"]) {
    Field& field = fields_.emplace_back();
    const auto form = forms.find(nb::cast<std::string>(f["form"]));
    field.form = form == forms.end() ? Form::kOther : form->second;
    field.name = hold(f["name"]);
    if (field.form != Form::kArray) continue;
    field.numpy_dtype = hold(f["numpy_dtype"]);
    field.torch_dtype = hold(f["torch_dtype"]);
    field.shape = hold(f["shape"]);
    field.bytes = nb::cast<size_t>(f["bytes"]);
  }
  held_ = std::make_unique<HeldObject>(std::move(held));
}

// The values in the order of the fields; false where the item is not what the others were.
bool ItemEncoder::find(nb::handle item, std::vector<nb::object>& out) const {
  const auto size = static_cast<Py_ssize_t>(fields_.size());
  switch (shape_) {
    case Shape::kTuple:
      if (!PyTuple_CheckExact(item.ptr()) || PyTuple_Size(item.ptr()) != size) return false;
      for (Py_ssize_t i = 0; i < size; ++i)
        out.push_back(nb::borrow(PyTuple_GetItem(item.ptr(), i)));
      return true;
    case Shape::kDict:
      if (!PyDict_CheckExact(item.ptr()) || PyDict_Size(item.ptr()) != size) return false;
      for (const Field& field : fields_) {
        PyObject* value = PyDict_GetItemWithError(item.ptr(), field.name);
        if (value == nullptr) {
          PyErr_Clear();
          return false;
        }
        out.push_back(nb::borrow(value));
      }
      return true;
    case Shape::kSingle:
      if (item.is_none()) return false;
      out.push_back(nb::borrow(item));
      return true;
    case Shape::kOther:
      break;
  }
  return false;
}

bool ItemEncoder::is_learned_array(const Field& field, nb::handle value, bool numpy) const {
  const nb::object dtype = attribute(value, dtype_);
  if (dtype.ptr() != (numpy ? field.numpy_dtype : field.torch_dtype)) return false;
  const nb::object shape = attribute(value, shape_name_);
  return shape.is_valid() && PyObject_RichCompareBool(shape.ptr(), field.shape, Py_EQ) == 1;
}

// Where the elements of a tensor lie, one after the other and as they are; null where they do not.
const void* ItemEncoder::tensor_data(const Field& field, nb::handle value) const {
  if (!is_learned_array(field, value, false) || attribute(value, is_cpu_).ptr() != Py_True ||
      called(value, is_contiguous_).ptr() != Py_True || called(value, is_neg_).ptr() != Py_False)
    return nullptr;
  const nb::object address = called(value, data_ptr_);
  return address.is_valid() ? PyLong_AsVoidPtr(address.ptr()) : nullptr;
}

bool ItemEncoder::add_array(const Field& field, nb::handle value, Values& out) const {
  if (Py_TYPE(value.ptr()) == numpy_array_)
    return is_learned_array(field, value, true) && out.add_buffer(value, field.bytes);
  if (Py_TYPE(value.ptr()) != torch_tensor_) return false;
  const void* data = tensor_data(field, value);
  if (data == nullptr) return false;
  out.add(data, field.bytes, nb::borrow(value));
  return true;
}

void ItemEncoder::add(size_t number, nb::handle value, Values& out) const {
  if (value.is_none()) return out.add_none();
  const Field& field = fields_[number];
  PyObject* object = value.ptr();
  if (field.form == Form::kInt && PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) return out.add_number(static_cast<uint64_t>(whole));
  } else if (field.form == Form::kFloat && PyFloat_CheckExact(object)) {
    const double real = PyFloat_AsDouble(object);
    uint64_t bits = 0;
    std::memcpy(&bits, &real, sizeof(bits));
    return out.add_number(bits);
  } else if (field.form == Form::kText && PyUnicode_CheckExact(object)) {
    Py_ssize_t size = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(object, &size))
      return out.add(text, static_cast<size_t>(size), nb::borrow(value));
    PyErr_Clear();
  } else if (field.form == Form::kBytes && PyBytes_CheckExact(object)) {
    return out.add(PyBytes_AsString(object), static_cast<size_t>(PyBytes_Size(object)),
                   nb::borrow(value));
  } else if (field.form == Form::kArray) {
    const bool taken = add_array(field, value, out);
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    if (taken) return;
  }
  nb::object converted = nb::handle(convert_)(value, number);
  if (converted.is_none()) return out.add_none();
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(converted.ptr(), &data, &size) != 0) throw nb::python_error();
  out.add(data, static_cast<size_t>(size), std::move(converted));
}

void ItemEncoder::collect(nb::handle item, Values& out) const {
  std::vector<nb::object> found;
  found.reserve(fields_.size());
  if (!find(item, found)) {
    found.clear();
    const nb::object flat = nb::handle(flatten_)(item);
    for (nb::handle value : nb::cast<nb::list>(flat)) found.push_back(nb::borrow(value));
    if (found.size() != fields_.size()) throw nb::value_error("another number of values");
  }
  for (size_t f = 0; f < fields_.size(); ++f) add(f, found[f], out);
}

void ItemEncoder::encode(nb::handle item, Buffer& into) const {
  Values values(fields_.size());
  collect(item, values);
  into.resize(values.bytes());
  values.write(into.data());
}

size_t ItemEncoder::encode(nb::handle item, MutableBytes room, Buffer& otherwise) const {
  Values values(fields_.size());
  collect(item, values);
  const size_t bytes = values.bytes();
  if (bytes > room.size()) otherwise.resize(bytes);
  values.write(bytes > room.size() ? otherwise.data() : room.data());
  return bytes;
}

// A value of the item, as it lies; null where the item is not what the others were.
PyObject* ItemEncoder::value_of(nb::handle item, size_t field) const {
  const auto size = static_cast<Py_ssize_t>(fields_.size());
  switch (shape_) {
    case Shape::kTuple:
      if (!PyTuple_CheckExact(item.ptr()) || PyTuple_Size(item.ptr()) != size) return nullptr;
      return PyTuple_GetItem(item.ptr(), static_cast<Py_ssize_t>(field));
    case Shape::kDict: {
      if (!PyDict_CheckExact(item.ptr()) || PyDict_Size(item.ptr()) != size) return nullptr;
      PyObject* value = PyDict_GetItemWithError(item.ptr(), fields_[field].name);
      if (value == nullptr) PyErr_Clear();
      return value;
    }
    case Shape::kSingle:
      return item.is_none() ? nullptr : item.ptr();
    case Shape::kOther:
      break;
  }
  return nullptr;
}

bool ItemEncoder::place_array(const Field& field, nb::handle value, MutableBytes room) const {
  if (Py_TYPE(value.ptr()) == numpy_array_) {
    Py_buffer buffer;
    if (!is_learned_array(field, value, true) ||
        PyObject_GetBuffer(value.ptr(), &buffer, PyBUF_SIMPLE) != 0)
      return false;
    const bool fits = static_cast<size_t>(buffer.len) == room.size();
    if (fits && !room.empty()) std::memcpy(room.data(), buffer.buf, room.size());
    PyBuffer_Release(&buffer);
    return fits;
  }
  if (Py_TYPE(value.ptr()) != torch_tensor_ || field.bytes != room.size()) return false;
  const void* data = tensor_data(field, value);
  if (data == nullptr) return false;
  std::memcpy(room.data(), data, room.size());
  return true;
}

void ItemEncoder::place_value(size_t number, nb::handle value, MutableBytes room) const {
  const Field& field = fields_[number];
  PyObject* object = value.ptr();
  if (field.form == Form::kArray) {
    const bool placed = place_array(field, value, room);
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    if (placed) return;
  } else if (field.form == Form::kInt && PyLong_CheckExact(object)) {
    int overflow = 0;
    const int64_t whole = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0 && room.size() == sizeof whole) {
      std::memcpy(room.data(), &whole, sizeof whole);
      return;
    }
  } else if (field.form == Form::kFloat && PyFloat_CheckExact(object) &&
             room.size() == sizeof(double)) {
    const double real = PyFloat_AsDouble(object);
    std::memcpy(room.data(), &real, sizeof real);
    return;
  }
  const nb::object converted = nb::handle(convert_)(value, number);
  if (converted.is_none()) {
    const nb::object never = nb::handle(missing_)(number);  // raises
    return;
  }
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(converted.ptr(), &data, &size) != 0) throw nb::python_error();
  if (static_cast<size_t>(size) != room.size())
    raise("a value of another size than in the samples that were looked at first");
  if (size > 0) std::memcpy(room.data(), data, room.size());
}

void ItemEncoder::place(nb::handle item, std::span<const Room> rooms) const {
  for (size_t i = 0; i < rooms.size(); ++i) {
    PyObject* value = value_of(item, rooms[i].field);
    if (value == nullptr) {
      // Nested, or of another kind.
      const auto flat = nb::cast<nb::list>(nb::handle(flatten_)(item));
      if (nb::len(flat) != fields_.size()) raise("another number of values");
      for (; i < rooms.size(); ++i)
        place_value(rooms[i].field, flat[rooms[i].field], rooms[i].bytes);
      return;
    }
    place_value(rooms[i].field, value, rooms[i].bytes);
  }
}

}  // namespace headrace::py

// SPDX-License-Identifier: Apache-2.0
#include "stored_bytes.h"

#include <cstddef>
#include <new>

namespace nb = nanobind;

namespace headrace::py {
namespace {

// A bytes object as CPython has laid it out since 3.3.  The stable ABI does not show it: where
// bytes.__basicsize__ says that a Python has it otherwise, values are copied.
struct BytesHead {
  PyVarObject base;
  Py_hash_t hash;
};

// The margin:  [owner: SharedBuffer] … [BytesHead] | data, size, '\0'
constexpr size_t kHead = sizeof(BytesHead);
static_assert(sizeof(SharedBuffer) + kHead <= kMargin);

constexpr size_t kWorthIt = 16 << 10;  // smaller values are copied faster than they are handed over

PyTypeObject* g_type = nullptr;
bool g_has_layout = false;  // BytesHead is this Python's

SharedBuffer* owner_of(PyObject* self) {
  return reinterpret_cast<SharedBuffer*>(reinterpret_cast<std::byte*>(self) + kHead - kMargin);
}

// The object lies in the memory that its owner holds: the owner is taken out of it first.
void let_go(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  SharedBuffer* place = owner_of(self);
  const SharedBuffer owner = std::move(*place);
  place->~SharedBuffer();
  Py_DECREF(type);
}

// Pickled and copied as what it is for everybody: bytes.
PyObject* reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("(O(N))", &PyBytes_Type,
                       PyBytes_FromStringAndSize(PyBytes_AsString(self), PyBytes_Size(self)));
}

PyTypeObject* make_type() {
  static PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(let_go)},
      {Py_tp_methods, methods},
      {Py_tp_doc, const_cast<char*>("bytes in the memory that they were read into")},
      {0, nullptr}};
  // Sizes of 0 are those of the base.  Nobody makes one from Python: let_go() would look for an
  // owner.
  static PyType_Spec spec{"headrace._core.StoredBytes", 0, 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  const nb::object bases = nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(&PyBytes_Type)));
  PyObject* type = PyType_FromSpecWithBases(&spec, bases.ptr());
  if (type == nullptr) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

nb::object stored_bytes(SharedBuffer buffer) {
  const size_t size = buffer->size();
  if (size < kWorthIt || buffer.use_count() != 1 || !g_has_layout)
    return nb::bytes(buffer->data(), size);
  buffer->data()[size] = std::byte{0};  // as behind all bytes
  auto* self = reinterpret_cast<BytesHead*>(buffer->margin() + kMargin - kHead);
  std::byte* margin = buffer->margin();
  new (margin) SharedBuffer(std::move(buffer));
  PyObject_InitVar(&self->base, g_type, static_cast<Py_ssize_t>(size));
  self->hash = -1;  // not hashed yet
  return nb::steal(reinterpret_cast<PyObject*>(self));
}

void bind_stored_bytes(nb::module_& m) {
  const nb::handle bytes(reinterpret_cast<PyObject*>(&PyBytes_Type));
  g_has_layout = nb::cast<size_t>(bytes.attr("__basicsize__")) == kHead + 1 &&
                 nb::cast<size_t>(bytes.attr("__itemsize__")) == 1;
  g_type = make_type();
  m.attr("StoredBytes") = nb::handle(reinterpret_cast<PyObject*>(g_type));
}

}  // namespace headrace::py

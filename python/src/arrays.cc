// SPDX-License-Identifier: Apache-2.0
#include "arrays.h"

#include <nanobind/ndarray.h>

#include <array>
#include <cstring>
#include <memory>

#include "python_buffer.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// What an array holds on to: Python's view of a buffer.  A type of its own, none of nanobind's: an
// array that lives until the interpreter goes (a batch in a global of a script, above all as a
// tensor, which never lets go of NumPy's array then) would be reported as a leak of ours.
struct MemoryObject {
  PyObject_HEAD SharedBuffer buffer;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  Buffer& buffer = *reinterpret_cast<MemoryObject*>(self)->buffer;
  return PyBuffer_FillInfo(view, self, buffer.data(), static_cast<Py_ssize_t>(buffer.size()), 0,
                           flags);
}

void free_memory(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  std::destroy_at(&reinterpret_cast<MemoryObject*>(self)->buffer);
  PyObject_Free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(&free_memory)},
                              {0, nullptr}};
PyType_Spec memory_spec = {"headrace._core.Memory", sizeof(MemoryObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};

PyObject* memory_type = nullptr;  // never freed: arrays may outlive the module

nb::object memory_of(const SharedBuffer& buffer) {
  nb::object out = nb::steal(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(memory_type), 0));
  if (!out.is_valid()) throw nb::python_error();
  std::construct_at(&reinterpret_cast<MemoryObject*>(out.ptr())->buffer, buffer);
  return out;
}

nb::dlpack::dtype dlpack_type(DType dtype) {
  using nb::dlpack::dtype_code;
  dtype_code code = dtype_code::UInt;
  switch (dtype) {
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      code = dtype_code::Int;
      break;
    case DType::kF16:
    case DType::kF32:
    case DType::kF64:
      code = dtype_code::Float;
      break;
    case DType::kBF16:
      code = dtype_code::Bfloat;
      break;
    default:
      break;
  }
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * size_of(dtype)), 1};
}

// NumPy's own constructor over the buffer: a batch is handed over between two training steps, with
// cold caches, where nanobind's way through a DLPack capsule and three imports costs 40 us.
struct NumpyNames {
  nb::object ndarray = nb::module_::import_("numpy").attr("ndarray");
  std::array<nb::object, 16> dtypes;  // by DType

  nb::handle dtype(DType wanted) {
    nb::object& known = dtypes[static_cast<size_t>(wanted)];
    if (known.is_valid()) return known;
    const nb::module_ numpy = nb::module_::import_("numpy");
    // NumPy has no bfloat16 of its own; ml_dtypes brings one.
    if (wanted == DType::kBF16)
      known = numpy.attr("dtype")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
    else
      known = numpy.attr("dtype")(
          std::string(1, "uif"[kind(wanted)]).append(std::to_string(size_of(wanted))).c_str());
    return known;
  }

 private:
  static size_t kind(DType dtype) {
    const auto code = static_cast<nb::dlpack::dtype_code>(dlpack_type(dtype).code);
    return code == nb::dlpack::dtype_code::UInt ? 0 : code == nb::dlpack::dtype_code::Int ? 1 : 2;
  }
};

nb::object numpy_array(const SharedBuffer& buffer, DType dtype, const std::vector<int64_t>& shape) {
  static auto* names = new NumpyNames;  // never freed: the interpreter may go first
  nb::object extents = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (size_t i = 0; i < shape.size(); ++i)
    PyTuple_SetItem(extents.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
  // An empty array needs no memory; NumPy refuses an empty buffer only without a shape.
  return names->ndarray(extents, names->dtype(dtype), memory_of(buffer));
}

nb::object torch_tensor(const SharedBuffer& buffer, DType dtype,
                        const std::vector<int64_t>& shape) {
  static auto* from_numpy = new nb::object(nb::module_::import_("torch").attr("from_numpy"));
  if (dtype != DType::kBF16) return (*from_numpy)(numpy_array(buffer, dtype, shape));
  static auto* bfloat16 = new nb::object(nb::module_::import_("torch").attr("bfloat16"));
  return (*from_numpy)(numpy_array(buffer, DType::kU16, shape)).attr("view")(*bfloat16);
}

nb::object jax_array(const SharedBuffer& buffer, DType dtype, const std::vector<int64_t>& shape) {
  const nb::object owner = memory_of(buffer);
  const std::vector<size_t> extents(shape.begin(), shape.end());
  return nb::cast(nb::ndarray<nb::jax>(buffer->data(), extents.size(), extents.data(), owner,
                                       nullptr, dlpack_type(dtype)),
                  nb::rv_policy::reference);
}

}  // namespace

nb::object to_array(const SharedBuffer& buffer, DType dtype, const std::vector<int64_t>& shape,
                    std::string_view framework) {
  if (framework == "torch") return torch_tensor(buffer, dtype, shape);
  if (framework == "jax") return jax_array(buffer, dtype, shape);
  return numpy_array(buffer, dtype, shape);
}

nb::object device_array(const SharedBuffer& buffer, DType dtype, const std::vector<int64_t>& shape,
                        std::string_view framework, int device) {
  const nb::capsule owner(new SharedBuffer(buffer),
                          [](void* p) noexcept { delete static_cast<SharedBuffer*>(p); });
  const std::vector<size_t> extents(shape.begin(), shape.end());
  const auto over = [&](auto kind) {
    return nb::cast(
        nb::ndarray<decltype(kind)>(buffer->data(), extents.size(), extents.data(), owner, nullptr,
                                    dlpack_type(dtype), nb::device::cuda::value, device),
        nb::rv_policy::reference);
  };
  if (framework == "torch") return over(nb::pytorch());
  if (framework == "jax") return over(nb::jax());
  return over(nb::cupy());
}

nb::object bool_array(const SharedBuffer& buffer, const std::vector<int64_t>& shape,
                      std::string_view framework) {
  nb::object array = to_array(buffer, DType::kU8, shape, framework);
  if (framework != "jax") {
    static auto* numpy = new nb::object(nb::module_::import_("numpy").attr("bool_"));
    if (framework == "numpy") return array.attr("view")(*numpy);
    return array.attr("view")(nb::module_::import_("torch").attr("bool"));
  }
  return array.attr("astype")("bool");
}

nb::object int64_array(const std::vector<int64_t>& values, const std::vector<int64_t>& shape,
                       std::string_view framework) {
  auto buffer = std::make_shared<Buffer>(values.size() * sizeof(int64_t));
  if (!values.empty()) std::memcpy(buffer->data(), values.data(), buffer->size());
  return to_array(buffer, DType::kI64, shape, framework);
}

void bind_arrays(nb::module_& m) {
  memory_type = PyType_FromSpec(&memory_spec);
  if (memory_type == nullptr) throw nb::python_error();
  m.attr("Memory") = nb::handle(memory_type);
}

}  // namespace headrace::py

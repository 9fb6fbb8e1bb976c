// SPDX-License-Identifier: Apache-2.0
//
// Python's buffer protocol, for wheels of the stable ABI.  It is a part of that since 3.11; Python
// 3.10 has the same struct, functions and slot, and its headers hide them from such a build.
#pragma once

#include <Python.h>

#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030B0000

struct Py_buffer {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
};

extern "C" {
PyAPI_FUNC(int) PyBuffer_FillInfo(Py_buffer* view, PyObject* o, void* buf, Py_ssize_t len,
                                  int readonly, int flags);
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject* obj, Py_buffer* view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer* view);
}

inline constexpr int PyBUF_SIMPLE = 0;
inline constexpr int PyBUF_WRITABLE = 1;
#define Py_bf_getbuffer 1

#endif

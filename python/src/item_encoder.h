// SPDX-License-Identifier: Apache-2.0
//
// ItemEncoder: what a user's __getitem__ returned, as the bytes of a sample: a RowTable whose row f
// holds the value of field f, or none.
//
// What is of the learned type and shape is copied here; for all else headrace/sources/items.py is
// asked, which converts it or says what is wrong.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "held_object.h"

namespace headrace::py {

// Used with the GIL.
class ItemEncoder {
 public:
  // As Items.description() in headrace/sources/items.py says.
  explicit ItemEncoder(nanobind::handle description);

  // Throws what Python raised.
  void encode(nanobind::handle item, Buffer& into) const;
  // Into `room` where it fits, else into `otherwise`.  How many bytes it takes.
  size_t encode(nanobind::handle item, MutableBytes room, Buffer& otherwise) const;

  // The values of some fields, each right where it goes: numbers and arrays of one size.
  struct Room {
    size_t field = 0;
    MutableBytes bytes;
  };
  // Throws what Python raised; a value that is not there is such an exception.
  void place(nanobind::handle item, std::span<const Room> rooms) const;

 private:
  enum class Shape : uint8_t { kTuple, kDict, kSingle, kOther };
  enum class Form : uint8_t { kInt, kFloat, kText, kBytes, kArray, kOther };
  struct Field {
    Form form = Form::kOther;
    PyObject* name = nullptr;
    PyObject* numpy_dtype = nullptr;
    PyObject* torch_dtype = nullptr;
    PyObject* shape = nullptr;
    size_t bytes = 0;
  };
  class Values;

  PyObject* value_of(nanobind::handle item, size_t field) const;
  void place_value(size_t field, nanobind::handle value, MutableBytes room) const;
  bool place_array(const Field& field, nanobind::handle value, MutableBytes room) const;
  const void* tensor_data(const Field& field, nanobind::handle value) const;
  bool is_learned_array(const Field& field, nanobind::handle value, bool numpy) const;
  void collect(nanobind::handle item, Values& out) const;
  bool find(nanobind::handle item, std::vector<nanobind::object>& out) const;
  void add(size_t field, nanobind::handle value, Values& out) const;
  bool add_array(const Field& field, nanobind::handle value, Values& out) const;

  Shape shape_ = Shape::kOther;
  std::vector<Field> fields_;  // what they point to is held by held_
  PyObject* flatten_ = nullptr;
  PyObject* convert_ = nullptr;
  PyObject* missing_ = nullptr;
  PyTypeObject* numpy_array_ = nullptr;
  PyTypeObject* torch_tensor_ = nullptr;  // null: without torch
  PyObject *dtype_ = nullptr, *shape_name_ = nullptr, *is_cpu_ = nullptr, *is_contiguous_ = nullptr,
           *is_neg_ = nullptr, *data_ptr_ = nullptr;  // names
  std::unique_ptr<HeldObject> held_;
};

}  // namespace headrace::py

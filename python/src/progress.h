// SPDX-License-Identifier: Apache-2.0
//
// Progress of long work, told to a Python function; Ctrl-C cancels the work.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>

namespace headrace::py {

// Called from the core's threads, one at a time, without the GIL.  Lives on the caller's stack,
// around the work; call finish() after it, with the GIL.
class Progress {
 public:
  explicit Progress(nanobind::object function) : function_(std::move(function)) {}

  template <typename... Numbers>
  void tell(Numbers... numbers) {
    nanobind::gil_scoped_acquire gil;
    if (cancel_.load() || function_.is_none()) return;
    try {
      function_(numbers...);
    } catch (nanobind::python_error& e) {
      // KeyboardInterrupt among them: the work ends and the exception goes on.
      e.restore();
      PyErr_Fetch(&type_, &value_, &trace_);
      cancel_ = true;
    }
  }

  const std::atomic<bool>* cancel() const { return &cancel_; }
  std::atomic<bool>& cancel_flag() { return cancel_; }

  void finish() {
    if (type_ == nullptr) return;
    PyErr_Restore(type_, value_, trace_);
    type_ = nullptr;
    throw nanobind::python_error();
  }

 private:
  nanobind::object function_;
  std::atomic<bool> cancel_{false};
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* trace_ = nullptr;
};

}  // namespace headrace::py

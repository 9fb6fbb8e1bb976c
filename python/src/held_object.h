// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace headrace::py {

// A Python object that may be let go by a thread without the GIL.
class HeldObject {
 public:
  explicit HeldObject(nanobind::object o) : o_(std::move(o)) {}
  HeldObject(const HeldObject&) = delete;
  HeldObject& operator=(const HeldObject&) = delete;
  ~HeldObject() {
    if (!nanobind::is_alive()) {
      (void)o_.release();
      return;
    }
    nanobind::gil_scoped_acquire gil;
    o_.reset();
  }
  const nanobind::object& get() const { return o_; }

 private:
  nanobind::object o_;
};

}  // namespace headrace::py

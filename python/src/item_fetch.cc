// SPDX-License-Identifier: Apache-2.0
#include "item_fetch.h"

namespace nb = nanobind;

namespace headrace::py {

nb::object ItemFetch::all(std::span<const uint64_t> numbers) const {
  if (!has_many() || numbers.size() < 2) return nb::none();
  try {
    nb::list asked;
    for (const uint64_t n : numbers) asked.append(n);
    nb::object got = many_.get()(asked);
    return nb::len(got) == numbers.size() ? got : nb::none();
  } catch (nb::python_error&) {
    return nb::none();
  }
}

nb::object ItemFetch::one(uint64_t number) const {
  if (has_many()) {
    nb::list one;
    one.append(number);
    return nb::object(many_.get()(one))[0];
  }
  const nb::object index = nb::steal(PyLong_FromUnsignedLongLong(number));
  nb::object item = nb::steal(PyObject_GetItem(object_.get().ptr(), index.ptr()));
  if (!item.is_valid()) throw nb::python_error();
  return item;
}

}  // namespace headrace::py

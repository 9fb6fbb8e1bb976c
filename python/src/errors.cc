// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <string_view>

namespace nb = nanobind;

namespace headrace::py {
namespace {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "usage";
    case Code::kNotFound:
      return "not_found";
    case Code::kPermission:
      return "permission";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kExhausted:
      return "exhausted";
    case Code::kCancelled:
      return "cancelled";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kOk:
    case Code::kInternal:
      break;
  }
  return "internal";
}

// A message is printed: bytes that are not UTF-8 are written out.
nb::object text(std::string_view s) {
  return nb::steal(
      PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "backslashreplace"));
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const StatusError& e) {
      const Place& place = e.status.place();
      const std::string message = e.status.text();
      nb::object error =
          nb::module_::import_("headrace.errors")
              .attr("make")(text(code_name(e.status.code())), text(message), text(place.file),
                            place.offset, place.sample, text(place.key));
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    }
  });
}

}  // namespace headrace::py

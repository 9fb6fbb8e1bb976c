// SPDX-License-Identifier: Apache-2.0
//
// Python objects as data sets: columns that lie in memory (index/memory_source.h), and objects
// whose samples their own __getitem__ makes.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <deque>

#include "convert.h"
#include "decoded_source.h"
#include "errors.h"
#include "handles.h"
#include "held_object.h"
#include "index/memory_source.h"
#include "item_encoder.h"
#include "item_fetch.h"
#include "item_processes.h"
#include "item_source.h"
#include "python_buffer.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

SourceHandle handle_of(nb::handle d, std::shared_ptr<const Source> source) {
  SourceHandle out;
  out.format = nb::cast<std::string>(d["format"]);
  out.source = std::move(source);
  for (nb::handle name : d["objects"]) out.objects.insert(nb::cast<std::string>(name));
  out.notices = nb::cast<std::vector<std::string>>(d["notices"]);
  out.classes = nb::cast<std::vector<std::string>>(d["classes"]);
  return out;
}

SourceHandle source_of_items(nb::dict d, std::shared_ptr<ItemThread> thread) {
  if (nb::cast<uint64_t>(d["samples"]) >= ~uint32_t{0})
    check(unsupported("an object in Python may have 4,294,967,294 samples at most"));
  auto cost = std::make_shared<ItemCost>();
  cost->name = nb::cast<std::string>(d["name"]);
  cost->in_processes = !d["processes"].is_none();
  SourceHandle out = handle_of(d, item_source(d, std::move(thread), cost));
  out.item_costs.push_back(std::move(cost));
  return out;
}

template <typename T>
const T* address_in(nb::handle d, const char* name) {
  return reinterpret_cast<const T*>(nb::cast<uintptr_t>(d[name]));
}

SourceHandle column_source(nb::dict d) {
  MemoryColumns columns{.name = nb::cast<std::string>(d["name"]),
                        .samples = nb::cast<uint64_t>(d["samples"]),
                        .columns = {},
                        .fingerprint = fingerprint_of(d["fingerprint"])};
  Schema schema = schema_of(d["fields"]);
  size_t at = 0;
  for (nb::handle c : d["fields"]) {
    MemoryColumn& column = columns.columns.emplace_back();
    column.field = std::move(schema[at++]);
    column.data = address_in<std::byte>(c, "data");
    column.row_bytes = nb::cast<uint64_t>(c["row_bytes"]);
    column.stride = nb::cast<int64_t>(c["stride"]);
    column.offsets = address_in<uint64_t>(c, "offsets");
    column.present = address_in<uint8_t>(c, "present");
    column.keep = std::make_shared<HeldObject>(nb::borrow(c["keep"]));
  }
  return handle_of(d, unwrap(memory_source(std::move(columns))));
}

// With fields more: {"field": …, "name": …, "function": …} each.
SourceHandle decoded(const SourceHandle& s, nb::list codecs) {
  std::vector<PythonCodec> list;
  for (nb::handle d : codecs)
    list.push_back({nb::cast<std::string>(d["field"]), nb::cast<std::string>(d["name"]),
                    nb::borrow(d["function"])});
  SourceHandle out = s;
  out.source = unwrap(decoded_source(s.source, std::move(list)));
  return out;
}

struct WritableView {
  Py_buffer view{};
  explicit WritableView(nb::handle o) {
    if (PyObject_GetBuffer(o.ptr(), &view, PyBUF_WRITABLE) != 0) throw nb::python_error();
  }
  ~WritableView() { PyBuffer_Release(&view); }
  WritableView(const WritableView&) = delete;
  WritableView& operator=(const WritableView&) = delete;
  MutableBytes bytes() const {
    return {static_cast<std::byte*>(view.buf), static_cast<size_t>(view.len)};
  }
};

nb::list failures(std::vector<std::pair<size_t, nb::object>>& failed) {
  nb::list out;
  for (auto& [number, error] : failed) out.append(nb::make_tuple(number, error));
  return out;
}

// Samples as item_processes.cc draws them; the numbers are u64s, the place is what to write to.
nb::tuple rows_of(const ItemEncoder& encoder, const ItemFetch& fetch, const nb::bytes& numbers,
                  nb::handle place) {
  std::vector<uint64_t> asked(numbers.size() / sizeof(uint64_t));
  if (!asked.empty()) std::memcpy(asked.data(), numbers.c_str(), asked.size() * sizeof(uint64_t));
  const WritableView room(place);
  EncodedRows rows = encode_rows(encoder, fetch, asked, room.bytes());
  std::string answer(reinterpret_cast<const char*>(&rows.in_place), sizeof rows.in_place);
  answer.append(reinterpret_cast<const char*>(rows.ends.data()),
                rows.ends.size() * sizeof(uint64_t));
  return nb::make_tuple(nb::bytes(answer.data(), answer.size()), to_bytes(Bytes(rows.more)),
                        failures(rows.failed));
}

// Samples into the slots that the header of a call names.
nb::list make_rows_of(const ItemEncoder& encoder, const ItemFetch& fetch, const nb::bytes& header,
                      nb::list places) {
  std::deque<WritableView> held;
  std::vector<MutableBytes> memory;
  for (nb::handle place : places) memory.push_back(held.emplace_back(place).bytes());
  std::vector<RowsToMake> parts = rows_of_call({header.c_str(), header.size()}, memory);
  if (parts.empty()) throw nb::value_error("a call of another form");
  std::vector<std::pair<size_t, nb::object>> failed;
  size_t before = 0;
  for (RowsToMake& rows : parts) {
    make_items(fetch, encoder, {&rows, 0, rows.samples.size()},
               [&](size_t i, nb::object error) { failed.emplace_back(before + i, error); });
    before += rows.samples.size();
  }
  return failures(failed);
}

void run_on(const ItemThread& thread, nb::callable function) {
  auto held = std::make_shared<HeldObject>(std::move(function));
  bool interrupted = false;
  {
    const nb::gil_scoped_release release;
    thread.run([held] { nb::borrow<nb::callable>(held->get())(); },
               [&interrupted] {
                 const nb::gil_scoped_acquire gil;
                 interrupted = PyErr_CheckSignals() != 0;
                 if (interrupted) PyErr_Clear();
                 return !interrupted;
               });
    held.reset();
  }
  if (!interrupted) return;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nb::python_error();
}

}  // namespace

void bind_sources(nb::module_& m) {
  nb::class_<ItemThread>(m, "ItemThread", "The thread that calls an object in Python.")
      .def(nb::init<size_t>(), nb::arg("processes") = 0)
      .def("run", &run_on, nb::arg("function"),
           "Calls a function, which must not raise, on the thread; returns when it is done.");
  nb::class_<ItemFetch>(m, "ItemFetch")
      .def(nb::init<nb::object, nb::object>(), nb::arg("object"), nb::arg("many").none());
  nb::class_<ItemEncoder>(m, "ItemEncoder")
      .def("__init__", [](ItemEncoder* self, nb::dict d) { new (self) ItemEncoder(d); })
      .def("encode",
           [](const ItemEncoder& self, nb::handle item) {
             Buffer out;
             self.encode(item, out);
             return to_bytes(out.bytes());
           })
      .def("encode_rows", &rows_of, nb::arg("fetch"), nb::arg("numbers"), nb::arg("place"),
           "(answer, rows that the place has no room for, [(number in the call, exception)])")
      .def("make_rows", &make_rows_of, nb::arg("fetch"), nb::arg("header"), nb::arg("places"),
           "[(number in the call, exception)]");
  m.def("item_source", &source_of_items, nb::arg("description"), nb::arg("thread"));
  m.def("column_source", &column_source, nb::arg("description"));
  m.def("decoded_source", &decoded, nb::arg("source"), nb::arg("codecs"));
  m.def("end_item_threads", &end_item_threads, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace headrace::py

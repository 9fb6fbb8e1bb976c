// SPDX-License-Identifier: Apache-2.0
//
// WorkerPool as headrace/processes/pool.py uses it: any arguments and results, of which the large
// parts lie in shared memory.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "errors.h"
#include "python_buffer.h"
#include "worker_pool.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

struct ViewOf {
  Py_buffer view{};
  explicit ViewOf(nb::handle o) {
    if (PyObject_GetBuffer(o.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~ViewOf() { PyBuffer_Release(&view); }
  ViewOf(const ViewOf&) = delete;
  ViewOf& operator=(const ViewOf&) = delete;
  Bytes bytes() const {
    return {static_cast<const std::byte*>(view.buf), static_cast<size_t>(view.len)};
  }
};

// An argument in shared memory: where it lies already, or a copy.
struct SharedArgument {
  nb::object owner;
  std::unique_ptr<ViewOf> view;
  Bytes bytes;

  explicit SharedArgument(nb::object given)
      : owner(std::move(given)), view(new ViewOf(owner)), bytes(view->bytes()) {
    if (bytes.empty() || process_arena()->name_of(bytes.data())) return;
    SharedBuffer copy = process_memory().take(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy->data());
    bytes = copy->bytes();
    owner = to_array(copy, DType::kU8, {static_cast<int64_t>(bytes.size())}, "numpy");
  }
};

nb::object result_memory(const WorkerResult& result, const std::vector<SharedArgument>& arguments,
                         SharedBuffer buffer) {
  if (result.segment == WorkerResult::kNone)
    return to_array(std::move(buffer), DType::kU8, {static_cast<int64_t>(result.bytes)}, "numpy");
  // A part of an argument.
  for (const SharedArgument& argument : arguments) {
    if (argument.bytes.empty()) continue;
    const auto name = process_arena()->name_of(argument.bytes.data());
    if (!name || name->segment != result.segment || result.offset < name->offset ||
        result.offset + result.bytes > name->offset + argument.bytes.size())
      continue;
    const auto from = static_cast<Py_ssize_t>(result.offset - name->offset);
    const auto to = from + static_cast<Py_ssize_t>(result.bytes);
    const nb::object bytes = nb::steal(PyMemoryView_FromObject(argument.owner.ptr()));
    return bytes.attr("cast")("B")[nb::slice(from, to)];
  }
  throw StatusError{internal("a process gave memory that is none of the arguments'")};
}

std::pair<nb::bytes, nb::list> call_pool(const WorkerPoolHandle& handle, uint32_t target,
                                         const nb::bytes& header, const nb::list& buffers) {
  std::vector<SharedArgument> arguments;
  std::vector<Bytes> inputs;
  for (nb::handle b : buffers) {
    arguments.emplace_back(nb::borrow(b));
    inputs.push_back(arguments.back().bytes);
  }
  const std::string text(header.c_str(), header.size());
  Result<WorkerReply> reply = internal("not called");
  std::vector<SharedBuffer> memory;
  WorkerError error;
  {
    nb::gil_scoped_release release;
    WorkerPool::Lease lease(*handle.pool);
    reply = lease.call(target, text, inputs);
    for (size_t i = 0; reply.ok() && i < reply.value().results.size(); ++i) {
      const WorkerResult& result = reply.value().results[i];
      memory.emplace_back();
      if (result.segment != WorkerResult::kNone) continue;
      memory.back() = process_memory().take(result.bytes);
      if (Status s = lease.place(static_cast<uint32_t>(i), memory.back()->span()); !s.ok())
        reply = s;
    }
    error = lease.error();
  }
  if (!error.traceback.empty())
    nb::module_::import_("headrace.errors").attr("remember_remote")(error.what, error.traceback);
  const WorkerReply got = unwrap(std::move(reply));
  nb::list out;
  for (size_t i = 0; i < got.results.size(); ++i)
    out.append(result_memory(got.results[i], arguments, memory[i]));
  return {nb::bytes(got.header.data(), got.header.size()), out};
}

}  // namespace

void bind_processes(nb::module_& m) {
  nb::class_<WorkerPoolHandle>(m, "WorkerPool")
      .def(
          "__init__",
          [](WorkerPoolHandle* self, const std::vector<std::string>& command,
             const std::vector<std::string>& environment) {
            new (self) WorkerPoolHandle{unwrap(WorkerPool::make({command, environment}))};
          },
          nb::kw_only(), nb::arg("command"), nb::arg("environment"))
      .def(
          "prepare",
          [](const WorkerPoolHandle& h, const nb::bytes& payload, size_t processes,
             const std::vector<int>& timeouts_ms) {
            check(h.pool->prepare(
                {std::string(payload.c_str(), payload.size()), processes, timeouts_ms}));
          },
          nb::kw_only(), nb::arg("payload"), nb::arg("processes"), nb::arg("timeouts_ms"))
      .def(
          "start", [](const WorkerPoolHandle& h) { h.pool->start(); },
          nb::call_guard<nb::gil_scoped_release>())
      .def(
          "close", [](const WorkerPoolHandle& h) { h.pool->close(); },
          nb::call_guard<nb::gil_scoped_release>())
      .def("pids", [](const WorkerPoolHandle& h) { return h.pool->pids(); })
      .def("restarts", [](const WorkerPoolHandle& h) { return h.pool->restarts(); })
      .def("call", &call_pool, nb::arg("target"), nb::arg("header"), nb::arg("buffers"),
           "(header, memory) that the target gives; buffers that lie in shared memory are not "
           "copied");
}

}  // namespace headrace::py

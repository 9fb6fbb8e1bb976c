// SPDX-License-Identifier: Apache-2.0
#include "python_store.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <map>
#include <string>

#include "held_object.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// Thread-safe: Python's lock lets one call in at a time.
class PythonStore final : public StoreWrapper {
 public:
  PythonStore(nb::handle readers, std::shared_ptr<const Store> rest)
      : StoreWrapper(std::move(rest)) {
    for (const auto& [path, reader] : nb::cast<nb::dict>(readers))
      readers_.emplace(nb::cast<std::string>(path),
                       std::make_unique<HeldObject>(nb::borrow<nb::object>(reader)));
  }

  void read(std::span<ReadRequest> requests) const override {
    for (ReadRequest& request : requests) {
      const auto it = readers_.find(request.path);
      if (it == readers_.end()) {
        inner().read({&request, 1});
      } else if (request.is_cancelled()) {
        complete_cancelled(std::move(request));
      } else {
        mark_sent(request);
        Status status = call(*it->second, request);
        complete(std::move(request), std::move(status));
      }
    }
  }

  bool read_if_resident(ReadRequest& request) const override {
    return !readers_.contains(request.path) && inner().read_if_resident(request);
  }
  std::optional<Pin> pin(std::string_view path, uint64_t offset, uint64_t length) const override {
    return readers_.contains(path) ? std::nullopt : inner().pin(path, offset, length);
  }
  StoreCost cost(const std::string& path) const override {
    return readers_.contains(path) ? StoreCost{.latency_ns = 100'000} : inner().cost(path);
  }

 private:
  static Status call(const HeldObject& reader, ReadRequest& request) {
    if (!nb::is_alive()) return cancelled("Python has ended");
    nb::gil_scoped_acquire gil;
    try {
      const bool whole = request.length == kWholeFile;
      const nb::object got = whole ? reader.get()(request.offset, nb::none())
                                   : reader.get()(request.offset, request.length);
      if (!nb::isinstance<nb::bytes>(got)) return internal("a reader that gives no bytes");
      const auto bytes = nb::borrow<nb::bytes>(got);
      if (!whole && bytes.size() != request.length)
        return corrupt(fmt::format("{} bytes came where {} were asked for", bytes.size(),
                                   request.length))
            .at(request.offset);
      return fill_request(request, as_bytes(std::string_view(bytes.c_str(), bytes.size())));
    } catch (nb::python_error& e) {
      if (e.matches(PyExc_KeyboardInterrupt)) {
        PyErr_SetInterrupt();  // for whoever called: this thread may not be the one that shows it
        return cancelled("interrupted");
      }
      if (e.matches(PyExc_MemoryError)) return exhausted("out of memory");
      return corrupt(nb::str(e.value()).c_str()).at(request.offset);
    } catch (const std::exception& e) {
      return internal(e.what());
    }
  }

  std::map<std::string, std::unique_ptr<HeldObject>, std::less<>> readers_;
};

}  // namespace

std::shared_ptr<const Store> python_store(nb::handle readers, std::shared_ptr<const Store> rest) {
  return std::make_shared<const PythonStore>(readers, std::move(rest));
}

}  // namespace headrace::py

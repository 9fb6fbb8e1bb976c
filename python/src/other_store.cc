// SPDX-License-Identifier: Apache-2.0
//
// A store of Python objects (headrace/other_stores.py), which are called under Python's lock: any
// number of threads wait for them, one computes.
//
//   reader.info(url)                -> (bytes, modified_ns, is_folder, version)
//   reader.list(url)                -> [(name, bytes, modified_ns, is_folder, version)]
//   reader.read(url, offset, length)-> bytes; length None: to the end
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "held_object.h"
#include "storage/open_store.h"
#include "storage/paths.h"
#include "storage/read_each.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

using Row = std::tuple<uint64_t, int64_t, bool, std::string>;

// What Python raised, by the kinds that the engine tells apart.
Status status_of(nb::python_error& e) {
  const std::string text = nb::str(e.value()).c_str();
  if (e.matches(PyExc_FileNotFoundError) || e.matches(PyExc_NotADirectoryError))
    return not_found(text.empty() ? "there is no such file" : text);
  if (e.matches(PyExc_PermissionError)) return {Code::kPermission, text};
  if (e.matches(PyExc_ImportError) || e.matches(PyExc_ValueError)) return unsupported(text);
  if (e.matches(PyExc_MemoryError)) return exhausted("out of memory");
  if (e.matches(PyExc_KeyboardInterrupt)) {
    PyErr_SetInterrupt();  // for whoever called: this thread may not be the one that shows it
    return cancelled("interrupted");
  }
  return unavailable(fmt::format("{}: {}", nb::type_name(e.type()).c_str(), text));
}

template <typename Work>
auto in_python(const Work& work) -> decltype(work()) {
  if (!nb::is_alive()) return cancelled("Python has ended");
  nb::gil_scoped_acquire gil;
  try {
    return work();
  } catch (nb::python_error& e) {
    return status_of(e);
  } catch (const std::exception& e) {
    return internal(e.what());
  }
}

FileInfo info_of(std::string path, Row row) {
  auto& [bytes, modified, is_folder, version] = row;
  return {.path = std::move(path),
          .bytes = bytes,
          .modified_ns = modified,
          .is_folder = is_folder,
          .version = std::move(version)};
}

// Thread-safe: Python's lock lets one call in at a time.
class OtherStore final : public Store {
 public:
  explicit OtherStore(nb::object reader) : reader_(std::move(reader)) {}

  void read(std::span<ReadRequest> requests) const override {
    read_each(requests,
              [&](ReadRequest& request) { return in_python([&] { return fill(request); }); });
  }

  StoreCost cost(const std::string&) const override {
    return {.latency_ns = 30'000'000, .parallel_reads = 16, .in_caller = true};
  }

  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override {
    std::vector<Result<FileInfo>> out;
    for (const std::string& path : paths) {
      Result<FileInfo> info = in_python([&]() -> Result<FileInfo> {
        return info_of(path, nb::cast<Row>(reader_.get().attr("info")(path)));
      });
      out.push_back(info.ok() ? std::move(info) : Result<FileInfo>(info.status().in_file(path)));
    }
    return out;
  }

  Result<ListPage> list_page(const std::string& folder, const std::string&) const override {
    Result<ListPage> page = in_python([&]() -> Result<ListPage> {
      ListPage out;
      for (const nb::handle entry : reader_.get().attr("list")(folder)) {
        const auto name = nb::cast<std::string>(entry[0]);
        out.entries.push_back(info_of(join_path(folder, name), nb::cast<Row>(entry[1])));
      }
      std::sort(out.entries.begin(), out.entries.end(),
                [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
      return out;
    });
    return page.ok() ? std::move(page) : Result<ListPage>(page.status().in_file(folder));
  }

 private:
  Status fill(ReadRequest& request) const {
    const bool whole = request.length == kWholeFile;
    if (!request.version.empty()) {
      const auto row = nb::cast<Row>(reader_.get().attr("info")(request.path));
      if (std::get<3>(row) != request.version)
        return changed_file(request.version, std::get<3>(row));
    }
    const nb::object length = whole ? nb::none() : nb::cast(request.length);
    const nb::object got = reader_.get().attr("read")(request.path, request.offset, length);
    if (!nb::isinstance<nb::bytes>(got)) return internal("a file system that gives no bytes");
    const auto bytes = nb::borrow<nb::bytes>(got);
    if (!whole && bytes.size() != request.length)
      return corrupt(fmt::format("the file ends here, {} bytes too early",
                                 request.length - std::min(request.length, bytes.size())))
          .at(request.offset + bytes.size());
    return fill_request(request, as_bytes(std::string_view(bytes.c_str(), bytes.size())));
  }

  const HeldObject reader_;
};

HeldObject* open_reader = nullptr;  // of the module; never freed

Result<std::shared_ptr<const Store>> make_store(std::string_view scheme) {
  return in_python([&]() -> Result<std::shared_ptr<const Store>> {
    return std::shared_ptr<const Store>(
        std::make_shared<const OtherStore>(open_reader->get()(std::string(scheme))));
  });
}

}  // namespace

void bind_other_stores(nb::module_& m);
void bind_other_stores(nb::module_& m) {
  m.def("set_other_stores", [](nb::object open) {
    if (open_reader == nullptr) open_reader = new HeldObject(std::move(open));
    set_other_stores(&make_store);
  });
}

}  // namespace headrace::py

// SPDX-License-Identifier: Apache-2.0
//
// Files by their URLs for headrace/arrays, wherever they lie; and a scheme for tests, behind which
// a local folder plays a distant store.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "convert.h"
#include "errors.h"
#include "interruptible.h"
#include "storage/open_store.h"
#include "storage/paths.h"
#include "storage/test_stores.h"
#include "tree_object.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// Names need not be UTF-8: they come as os.fsdecode() gives them.

// (bytes, time, whether it is a folder, version); None where there is nothing of that name.
nb::list stat_all(nb::handle list) {
  const std::vector<std::string> urls = to_tree(list).texts();
  nb::list out;
  if (urls.empty()) return out;
  const std::shared_ptr<const Store> store = unwrap(store_of_all(urls));
  std::vector<std::string> paths;
  for (const std::string& url : urls) paths.push_back(unwrap(open_store(url)).path);
  const bool far = std::any_of(urls.begin(), urls.end(), is_remote);
  const auto found = run_interruptible(far, [&] { return store->stat_all(paths); });
  for (const Result<FileInfo>& info : found) {
    if (!info.ok() && info.status().code() != Code::kNotFound) check(info.status());
    if (info.ok())
      out.append(nb::make_tuple(info.value().bytes, info.value().modified_ns,
                                info.value().is_folder, to_str(info.value().version)));
    else
      out.append(nb::none());
  }
  return out;
}

nb::bytes read_range(nb::handle url, uint64_t offset, uint64_t length) {
  const OpenedUrl at = unwrap(open_store(to_tree(url).text()));
  Buffer into;
  check(run_interruptible(is_remote(at.path),
                          [&] { return at.store->read_at(at.path, offset, length, into); }));
  return nb::bytes(into.data(), into.size());
}

nb::bytes read_file(nb::handle url) {
  const OpenedUrl at = unwrap(open_store(to_tree(url).text()));
  const Buffer bytes =
      unwrap(run_interruptible(is_remote(at.path), [&] { return at.store->read_all(at.path); }));
  return nb::bytes(bytes.data(), bytes.size());
}

// A file, or an object of a store that can be written.
void write_file_at(nb::handle url, nb::bytes data) {
  const std::string at(to_tree(url).text());
  const Bytes bytes = as_bytes({data.c_str(), data.size()});
  Status status;
  {
    nb::gil_scoped_release release;
    status = write_url(at, bytes);
  }
  check(status);
}

// (name, whether it is a folder) of each entry, sorted by name.
nb::list list_folder(nb::handle url) {
  const OpenedUrl at = unwrap(open_store(to_tree(url).text()));
  const std::vector<FileInfo> entries =
      unwrap(run_interruptible(is_remote(at.path), [&] { return at.store->list(at.path); }));
  nb::list out;
  for (const FileInfo& entry : entries) {
    std::string_view path = entry.path;
    while (path.ends_with('/')) path.remove_suffix(1);
    out.append(nb::make_tuple(to_str(base_name(path)), entry.is_folder));
  }
  return out;
}

// scheme://a/b is the file a/b of a local folder, with a latency.  As in an object store files have
// tags and no times, and folders have nothing.  Thread-safe.
class FarFolder final : public StoreWrapper {
 public:
  FarFolder(std::string scheme, std::string folder, std::chrono::milliseconds latency, bool lists)
      : StoreWrapper(open_store("/").value().store),
        prefix_(std::move(scheme) + "://"),
        folder_(std::move(folder)),
        latency_(latency),
        lists_(lists) {}

  void read(std::span<ReadRequest> requests) const override {
    for (ReadRequest& request : requests) {
      ++reads;
      const std::string url = request.path;
      request.path = place(url);
      request.version.clear();
      request.done = [url, bytes = &bytes, done = std::move(request.done)](ReadRequest&& r) {
        r.path = url;
        *bytes += r.bytes_read();
        done(std::move(r));
      };
      inner().read({&request, 1});
    }
  }
  bool read_if_resident(ReadRequest&) const override { return false; }
  std::optional<Pin> pin(std::string_view, uint64_t, uint64_t) const override { return {}; }
  StoreCost cost(const std::string&) const override {
    return {.latency_ns = 20'000'000, .parallel_reads = 64, .in_caller = false};
  }

  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> urls) const override {
    ++stats;
    std::this_thread::sleep_for(latency_);
    std::vector<Result<FileInfo>> out;
    for (const std::string& url : urls) {
      Result<FileInfo> info = inner().stat(place(url));
      if (!info.ok()) {
        out.push_back(Status(info.status().code(), "there is no such file").in_file(url));
        continue;
      }
      info.value().path = url;
      if (!info.value().is_folder) info.value().version = "\"" + info.value().version + "\"";
      if (info.value().is_folder) info.value().version.clear();
      info.value().modified_ns = 0;
      out.push_back(std::move(info));
    }
    return out;
  }

  Result<ListPage> list_page(const std::string& url, const std::string& after) const override {
    if (!lists_) return unsupported("this store has no listings").in_file(url);
    ++listings;
    std::this_thread::sleep_for(latency_);
    HEADRACE_ASSIGN(ListPage page, inner().list_page(place(url), ""));
    for (FileInfo& entry : page.entries)
      entry.path = prefix_ + entry.path.substr(folder_.size() + 1);
    std::erase_if(page.entries, [&after](const FileInfo& e) { return e.path <= after; });
    return page;
  }

  mutable std::atomic<uint64_t> reads{0}, bytes{0}, stats{0}, listings{0};

 private:
  std::string place(const std::string& url) const {
    return join_path(folder_, std::string_view(url).substr(std::min(prefix_.size(), url.size())));
  }

  const std::string prefix_, folder_;
  const std::chrono::milliseconds latency_;
  const bool lists_;
};

struct TestingScheme {
  std::shared_ptr<const FarFolder> far;
  std::unique_ptr<ScopedStore> scope;

  void reset() const { far->reads = far->bytes = far->stats = far->listings = 0; }
};

TestingScheme testing_scheme(std::string scheme, std::string folder, int latency_ms, bool lists) {
  TestingScheme out;
  const std::chrono::milliseconds latency(latency_ms);
  out.far = std::make_shared<const FarFolder>(scheme, std::move(folder), latency, lists);
  out.scope = std::make_unique<ScopedStore>(
      std::move(scheme),
      std::make_shared<const LatencyStore>(out.far, LatencyOptions{.latency = latency}));
  return out;
}

}  // namespace

void bind_store(nb::module_& m) {
  m.def("stat_all", &stat_all);
  m.def("read_range", &read_range);
  m.def("read_file", &read_file, nb::arg("url"));
  m.def("write_file", &write_file_at, nb::arg("url"), nb::arg("data"));
  m.def("list_folder", &list_folder);
  nb::class_<TestingScheme>(m, "TestingScheme")
      .def_prop_ro("reads", [](const TestingScheme& s) { return s.far->reads.load(); })
      .def_prop_ro("bytes", [](const TestingScheme& s) { return s.far->bytes.load(); })
      .def_prop_ro("stats", [](const TestingScheme& s) { return s.far->stats.load(); })
      .def_prop_ro("listings", [](const TestingScheme& s) { return s.far->listings.load(); })
      .def("reset", &TestingScheme::reset)
      .def("close", [](TestingScheme& s) { s.scope.reset(); });
  m.def("testing_scheme", &testing_scheme, nb::arg("scheme"), nb::arg("folder"),
        nb::arg("latency_ms") = 0, nb::arg("lists") = true);
}

}  // namespace headrace::py

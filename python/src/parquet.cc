// SPDX-License-Identifier: Apache-2.0
//
// pyarrow as the engine's ParquetLibrary.  Python is called to begin something; the columns come as
// C arrays that need neither Python nor its lock.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "format/parquet/library.h"
#include "held_object.h"
#include "python_buffer.h"
#include "storage/store.h"
#include "stored_bytes.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// parquet_bridge.py raises our own errors, with the codes' meaning in their types.
Status failure(nb::python_error& e) {
  const std::string text = nb::str(e.value()).c_str();
  if (e.matches(PyExc_MemoryError)) return exhausted("pyarrow: out of memory");
  if (e.matches(PyExc_NotImplementedError)) return unsupported(text);
  if (e.matches(PyExc_FileNotFoundError)) return not_found(text);
  if (e.matches(PyExc_PermissionError)) return Status(Code::kPermission, text);
  if (e.matches(PyExc_OSError)) return unavailable(text);
  if (e.matches(PyExc_KeyboardInterrupt)) {
    PyErr_SetInterrupt();  // for whoever called: this thread may not be the one that shows it
    return cancelled("interrupted");
  }
  return corrupt(text);
}

// Calls `f` with the GIL; what it raises becomes a Status.
template <typename F>
Status with_gil(F&& f) {
  if (!nb::is_alive()) return cancelled("Python has ended");
  nb::gil_scoped_acquire gil;
  try {
    f();
    return {};
  } catch (nb::python_error& e) {
    return failure(e);
  } catch (const std::exception& e) {
    return internal(std::string("pyarrow: ") + e.what());
  }
}

nb::object bridge() {
  return nb::module_::import_("headrace.parquet_bridge");
}

template <typename T>
uint64_t address(T* at) {
  return reinterpret_cast<uintptr_t>(at);
}

nb::object path_of(const std::string& path) {
  return nb::steal(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

// What pyarrow reads from: the file object's face of a file of a store.  It must not be used after
// detach().  One thread at a time.
class StoreFile {
 public:
  StoreFile(const Store* store, FileInfo info) : store_(store), info_(std::move(info)) {}

  nb::object read(int64_t wanted) {
    const uint64_t left = info_.bytes - std::min(at_, info_.bytes);
    const uint64_t length = wanted < 0 ? left : std::min(left, static_cast<uint64_t>(wanted));
    auto buffer = std::make_shared<Buffer>();
    if (store_ == nullptr) status_ = internal("a file that is used after its end");
    if (status_.ok()) {
      nb::gil_scoped_release release;
      status_ = store_->read_at(info_.path, at_, length, *buffer);
    }
    if (!status_.ok()) throw std::runtime_error(status_.text());
    at_ += length;
    return stored_bytes(std::move(buffer));
  }
  int64_t seek(int64_t offset, int whence) {
    const int64_t from = whence == 0   ? 0
                         : whence == 1 ? static_cast<int64_t>(at_)
                                       : static_cast<int64_t>(info_.bytes);
    if (whence < 0 || whence > 2 || offset < -from) throw nb::value_error("no such place");
    at_ = static_cast<uint64_t>(from + offset);
    return tell();
  }
  int64_t tell() const { return static_cast<int64_t>(at_); }
  bool closed() const { return closed_; }
  void close() { closed_ = true; }
  // The same while the file is.
  std::string version() const {
    return info_.version.empty() ? version_of(info_.bytes, info_.modified_ns) : info_.version;
  }
  void detach() { store_ = nullptr; }
  const Status& status() const { return status_; }

 private:
  const Store* store_;
  const FileInfo info_;
  uint64_t at_ = 0;
  Status status_;
  bool closed_ = false;
};

// Calls `f` with a file object that is its own for the call.  What the store said is the cause of a
// failure, where it said something.
template <typename F>
Status with_file(const Store& store, const std::string& path, F&& f) {
  HEADRACE_ASSIGN(FileInfo info, store.stat(path));
  Status cause;
  const Status status = with_gil([&] {
    const nb::object file = nb::cast(StoreFile(&store, std::move(info)));
    StoreFile& own = nb::cast<StoreFile&>(file);
    try {
      f(file);
    } catch (...) {
      cause = own.status();
      own.detach();
      throw;
    }
    own.detach();
  });
  return cause.ok() ? status : cause;
}

// What pyarrow writes to: the file object's face of a sink.  One thread at a time.
class SinkFile {
 public:
  explicit SinkFile(Sink* sink) : sink_(sink) {}

  int64_t write(nb::handle data) {
    Py_buffer view;
    if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    const Bytes bytes(static_cast<const std::byte*>(view.buf), static_cast<size_t>(view.len));
    if (sink_ != nullptr && status_.ok()) {
      nb::gil_scoped_release release;
      status_ = sink_->append(bytes);
    }
    PyBuffer_Release(&view);
    if (!status_.ok()) throw std::runtime_error(status_.text());
    written_ += static_cast<int64_t>(bytes.size());
    return static_cast<int64_t>(bytes.size());
  }
  int64_t tell() const { return written_; }
  bool closed() const { return closed_; }
  void close() { closed_ = true; }
  // The sink is gone: what a writer that was not finished still has to say goes nowhere.
  void detach() { sink_ = nullptr; }
  const Status& status() const { return status_; }

 private:
  Sink* sink_;
  Status status_;
  int64_t written_ = 0;
  bool closed_ = false;
};

class PyarrowWriter final : public ParquetFileWriter {
 public:
  ~PyarrowWriter() override {
    if (!file_ || !nb::is_alive()) return;
    nb::gil_scoped_acquire gil;
    nb::cast<SinkFile&>(file_->get()).detach();
  }

  Status open(ArrowSchema* schema, const std::vector<ParquetColumnOptions>& columns, Sink& sink) {
    return with_gil([&] {
      nb::list options;
      for (const ParquetColumnOptions& c : columns)
        options.append(nb::make_tuple(c.leaf, c.compress, c.repeats));
      file_ = std::make_unique<HeldObject>(nb::cast(SinkFile(&sink)));
      writer_ = std::make_unique<HeldObject>(
          bridge().attr("FileWriter")(address(schema), options, file_->get()));
    });
  }

  Status write(ArrowOwned<ArrowArray> group) override {
    return after(with_gil([&] { writer_->get().attr("write")(address(&*group)); }));
  }

  Status finish() override {
    return after(with_gil([&] { writer_->get().attr("finish")(); }));
  }

 private:
  // What the sink said is the cause, where it said something.
  Status after(Status status) const {
    if (status.ok()) return status;
    Status cause;
    const Status looked = with_gil([&] { cause = nb::cast<SinkFile&>(file_->get()).status(); });
    return looked.ok() && !cause.ok() ? cause : status;
  }

  std::unique_ptr<HeldObject> file_, writer_;
};

class Pyarrow final : public ParquetLibrary {
 public:
  Result<ParquetLayout> layout(const Store& store, const std::string& path) const override {
    ParquetLayout out;
    HEADRACE_TRY(with_file(store, path, [&](const nb::object& file) {
      const nb::object groups =
          bridge().attr("layout")(file, path_of(path), address(out.schema.fill()));
      for (nb::handle item : groups) {
        const auto pair = nb::cast<nb::tuple>(item);
        ParquetGroup& group = out.groups.emplace_back();
        group.rows = nb::cast<uint64_t>(pair[0]);
        for (nb::handle chunk : nb::cast<nb::list>(pair[1])) {
          const auto [offset, bytes] = nb::cast<std::pair<uint64_t, uint64_t>>(chunk);
          group.chunks.push_back({offset, bytes});
        }
      }
    }));
    return out;
  }

  Status read(const Store& store, const std::string& path, uint64_t offset, uint32_t leaf,
              uint64_t rows, ArrowArrayStream* out) const override {
    return with_file(store, path, [&](const nb::object& file) {
      bridge().attr("read")(file, path_of(path), offset, leaf, rows, address(out));
    });
  }

  Result<std::unique_ptr<ParquetFileWriter>> create(
      ArrowOwned<ArrowSchema> schema, const std::vector<ParquetColumnOptions>& columns,
      Sink& sink) const override {
    auto writer = std::make_unique<PyarrowWriter>();
    HEADRACE_TRY(writer->open(&*schema, columns, sink));
    return std::unique_ptr<ParquetFileWriter>(std::move(writer));
  }
};

}  // namespace

void bind_parquet(nb::module_& m) {
  nb::class_<SinkFile>(m, "SinkFile")
      .def("write", &SinkFile::write)
      .def("tell", &SinkFile::tell)
      .def("flush", [](SinkFile&) {})
      .def("close", &SinkFile::close)
      .def_prop_ro("closed", &SinkFile::closed);
  nb::class_<StoreFile>(m, "StoreFile")
      .def("read", &StoreFile::read, nb::arg("bytes") = -1)
      .def("seek", &StoreFile::seek, nb::arg("offset"), nb::arg("whence") = 0)
      .def("tell", &StoreFile::tell)
      .def("close", &StoreFile::close)
      .def("readable", [](StoreFile&) { return true; })
      .def("seekable", [](StoreFile&) { return true; })
      .def("writable", [](StoreFile&) { return false; })
      .def_prop_ro("closed", &StoreFile::closed)
      .def_prop_ro("version", &StoreFile::version);
  static const Pyarrow pyarrow;
  set_parquet_library(&pyarrow);
}

}  // namespace headrace::py

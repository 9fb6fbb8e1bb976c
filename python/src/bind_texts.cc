// SPDX-License-Identifier: Apache-2.0
//
// Texts of JSON lines for hr.tokenize: read and taken apart without the GIL.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "convert.h"
#include "errors.h"
#include "format/files/json_texts.h"
#include "storage/open_store.h"
#include "tree_object.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

nb::object as_str(std::string_view text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

// One range of one file.  One thread at a time.
class TextLines {
 public:
  explicit TextLines(std::unique_ptr<JsonTexts> lines) : lines_(std::move(lines)) {}

  // (texts, [(line of the range, texts of the range before it, cause)])
  nb::tuple next(uint64_t bytes) {
    Status status;
    {
      nb::gil_scoped_release release;
      status = lines_->next(bytes, batch_);
    }
    check(status);
    nb::list texts, bad;
    size_t begin = 0;
    for (const size_t end : batch_.ends) {
      texts.append(as_str(std::string_view(batch_.bytes).substr(begin, end - begin)));
      begin = end;
    }
    for (const BadLine& b : batch_.bad) bad.append(nb::make_tuple(b.line, b.after, b.cause));
    return nb::make_tuple(texts, bad);
  }

  nb::bytes first_line() {
    std::string_view line;
    Status status;
    {
      nb::gil_scoped_release release;
      status = lines_->first_line(line);
    }
    check(status);
    return nb::bytes(line.data(), line.size());
  }

  bool at_end() const { return lines_->at_end(); }
  uint64_t used_bytes() const { return lines_->used_bytes(); }

 private:
  std::unique_ptr<JsonTexts> lines_;
  JsonTextBatch batch_;
};

// Files of texts, in one store.  Immutable, hence thread-safe.
class TextFiles {
 public:
  explicit TextFiles(nb::handle list) {
    const std::vector<std::string> urls = to_tree(list).texts();
    store_ = unwrap(store_of_all(urls));
    std::vector<std::string> paths;
    for (const std::string& url : urls) paths.push_back(unwrap(open_store(url)).path);
    std::vector<Result<FileInfo>> found;
    {
      nb::gil_scoped_release release;
      found = store_->stat_all(paths);
    }
    for (Result<FileInfo>& info : found) files_.push_back(unwrap(std::move(info)));
  }

  nb::list sizes() const {
    nb::list out;
    for (const FileInfo& file : files_) out.append(file.bytes);
    return out;
  }

  TextLines lines(size_t file, uint64_t begin, nb::handle end, const std::string& member) const {
    const uint64_t stop = end.is_none() ? kWholeFile : nb::cast<uint64_t>(end);
    return TextLines(unwrap(JsonTexts::open(store_, files_.at(file), {begin, stop}, member)));
  }

  uint64_t line_ends(size_t file, uint64_t end) const {
    Result<uint64_t> count = internal("not counted");
    {
      nb::gil_scoped_release release;
      count = count_line_ends(*store_, files_.at(file), end);
    }
    return unwrap(std::move(count));
  }

  nb::bytes all(size_t file) const {
    Result<Buffer> read = internal("not read");
    {
      nb::gil_scoped_release release;
      read = store_->read_all(files_.at(file).path);
    }
    const Buffer bytes = unwrap(std::move(read));
    return nb::bytes(bytes.data(), bytes.size());
  }

 private:
  std::shared_ptr<const Store> store_;
  std::vector<FileInfo> files_;
};

// The Python ints of a list or tuple, each from 0 to `below` - 1, and `end` unless it is negative.
template <typename T>
void put_document(PyObject* numbers, int64_t end, int64_t below, std::vector<T>& out) {
  // PySequence_Fast's macros are no part of the stable ABI.
  const bool is_list = PyList_Check(numbers);
  const Py_ssize_t n = is_list ? PyList_Size(numbers) : PyTuple_Size(numbers);
  const size_t before = out.size();
  out.resize(before + static_cast<size_t>(n) + (end >= 0 ? 1 : 0));
  T* at = out.data() + before;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = is_list ? PyList_GetItem(numbers, i) : PyTuple_GetItem(numbers, i);
    const long number = PyLong_AsLong(item);
    if (number < 0 || number >= below) {
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      check(
          invalid(fmt::format("the tokenizer gave the number {}, and says that its vocabulary "
                              "has {}: its files do not belong together",
                              number, below)));
    }
    *at++ = static_cast<T>(number);
  }
  if (end >= 0) *at = static_cast<T>(end);
}

template <typename T>
nb::tuple documents_as(nb::list values, int64_t end, int64_t below) {
  std::vector<T> all;
  nb::list lengths;
  size_t before = 0;
  for (nb::handle value : values) {
    const nb::object numbers = nb::steal(PySequence_Fast(value.ptr(), "tokens are a list"));
    if (!numbers.is_valid()) throw nb::python_error();
    put_document(numbers.ptr(), end, below, all);
    lengths.append(all.size() - before);
    before = all.size();
  }
  return nb::make_tuple(nb::bytes(all.data(), all.size() * sizeof(T)), lengths);
}

// Lists of numbers as the bytes of a file of tokens, and how many tokens each has.
nb::tuple token_bytes(nb::list values, const std::string& dtype, int64_t end, int64_t below) {
  return dtype == "u16" ? documents_as<uint16_t>(values, end, below)
                        : documents_as<int32_t>(values, end, below);
}

}  // namespace

void bind_texts(nb::module_& m) {
  nb::class_<TextLines>(m, "TextLines")
      .def("next", &TextLines::next, nb::arg("bytes"))
      .def("first_line", &TextLines::first_line)
      .def_prop_ro("at_end", &TextLines::at_end)
      .def_prop_ro("used_bytes", &TextLines::used_bytes);
  nb::class_<TextFiles>(m, "TextFiles")
      .def(nb::init<nb::handle>(), nb::arg("urls"))
      .def_prop_ro("sizes", &TextFiles::sizes)
      .def("lines", &TextFiles::lines, nb::arg("file"), nb::arg("begin"), nb::arg("end").none(),
           nb::arg("member"))
      .def("line_ends", &TextFiles::line_ends, nb::arg("file"), nb::arg("end"))
      .def("all", &TextFiles::all, nb::arg("file"));
  m.def("token_bytes", &token_bytes, nb::arg("values"), nb::arg("dtype"), nb::arg("end"),
        nb::arg("below"));
}

}  // namespace headrace::py

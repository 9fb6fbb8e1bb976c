// SPDX-License-Identifier: Apache-2.0
//
// Columns of all samples that Python holds: looked into samples, or made by a function; kept
// beside the data.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "convert.h"
#include "errors.h"
#include "handles.h"
#include "index/expression.h"
#include "index/kept_column.h"
#include "loader/read_members.h"
#include "open/index_places.h"
#include "progress.h"
#include "storage/paths.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

using Numbers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Two places: beside the data, and this user's folder where that cannot be written.
std::vector<std::string> places_of(const IndexedSource& source, const std::string& column,
                                   bool make) {
  std::vector<std::string> out;
  const std::string beside = kept_column_path(source, column);
  if (scheme_of(beside).empty()) out.push_back(beside);
  const Result<std::string> made = make ? cache_folder() : existing_cache_folder();
  const std::string folder = made.ok() ? made.value() : std::string();
  if (!folder.empty())
    out.push_back(join_path(folder, "column-" + Hasher().add(beside).finish().hex() + ".hridx"));
  return out;
}

bool can_keep(const SourceHandle& s) {
  return s.whole != nullptr && s.source == s.whole;
}

nb::object kept(const SourceHandle& s, const std::string& column) {
  if (!can_keep(s)) return nb::none();
  Result<FieldColumn> found = not_found("none");
  {
    nb::gil_scoped_release release;
    const Result<Hash128> stamp = column_stamp(*s.whole, column);
    if (stamp.ok())
      for (const std::string& path : places_of(*s.whole, column, false))
        if (!found.ok()) found = read_column(path, stamp.value());
  }
  if (!found.ok() || found.value().present.size() != s.source->size()) return nb::none();
  return nb::cast(std::move(found).value());
}

// Whether it could be kept somewhere.
bool keep(const SourceHandle& s, const std::string& column, const FieldColumn& values) {
  if (!can_keep(s)) return false;
  nb::gil_scoped_release release;
  const Result<Hash128> stamp = column_stamp(*s.whole, column);
  if (!stamp.ok()) return false;
  for (const std::string& path : places_of(*s.whole, column, true))
    if (write_column(path, stamp.value(), values).ok()) return true;
  return false;
}

FieldColumn look(const SourceHandle& s, const std::vector<std::string>& fields,
                 const std::string& member, nb::object function) {
  Progress progress(std::move(function));
  Result<FieldColumn> found = internal("not looked");
  {
    nb::gil_scoped_release release;
    found = read_members(
        *s.source, {fields, member},
        {.progress = [&progress](uint64_t done, uint64_t all) { progress.tell(done, all); },
         .cancel = progress.cancel()});
  }
  progress.finish();
  return unwrap(std::move(found));
}

// A list of numbers or texts, with None where a sample has none.
FieldColumn column_of(const nb::list& values, const std::string& type) {
  FieldColumn out{.type = type == "int"     ? ColumnType::kInt
                          : type == "float" ? ColumnType::kFloat
                                            : ColumnType::kText,
                  .present = {}};
  for (nb::handle value : values) {
    const bool there = !value.is_none();
    out.present.push_back(there ? 1 : 0);
    if (out.type == ColumnType::kInt) out.ints.push_back(there ? nb::cast<int64_t>(value) : 0);
    if (out.type == ColumnType::kFloat) out.floats.push_back(there ? nb::cast<double>(value) : 0);
    if (out.type == ColumnType::kText)
      out.texts.push_back(there ? nb::cast<std::string>(value) : std::string());
  }
  return out;
}

FieldColumn take(const FieldColumn& column, const Numbers& numbers) {
  FieldColumn out{.type = column.type, .present = {}};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto n = static_cast<size_t>(numbers.data()[i]);
    if (n >= column.present.size()) throw nb::index_error("no such sample");
    out.present.push_back(column.present[n]);
    if (!column.ints.empty()) out.ints.push_back(column.ints[n]);
    if (!column.floats.empty()) out.floats.push_back(column.floats[n]);
    if (!column.texts.empty()) out.texts.push_back(column.texts[n]);
  }
  return out;
}

nb::list cells(const FieldColumn& column) {
  nb::list out;
  for (size_t row = 0; row < column.present.size(); ++row) {
    if (column.present[row] == 0)
      out.append(nb::none());
    else if (column.type == ColumnType::kInt)
      out.append(nb::int_(column.ints[row]));
    else if (column.type == ColumnType::kFloat)
      out.append(nb::float_(column.floats[row]));
    else
      out.append(to_str(column.texts[row]));
  }
  return out;
}

}  // namespace

void bind_columns(nb::module_& m) {
  nb::class_<FieldColumn>(m, "Column")
      .def_static("of", &column_of, nb::arg("values"), nb::arg("type"))
      .def_prop_ro("size", [](const FieldColumn& c) { return c.present.size(); })
      .def("take", &take, nb::arg("numbers"))
      .def("cells", &cells, "A list, with None where a sample has no such value.");
  m.def("kept_column", &kept, nb::arg("source"), nb::arg("column"), nb::rv_policy::move);
  m.def("keep_column", &keep, nb::arg("source"), nb::arg("column"), nb::arg("values"));
  m.def("read_members", &look, nb::arg("source"), nb::arg("fields"), nb::arg("member"),
        nb::arg("progress") = nb::none());
  m.def("expression_names", [](const std::string& text) {
    const Expression parsed = unwrap(Expression::parse(text));
    return parsed.names();
  });
}

}  // namespace headrace::py

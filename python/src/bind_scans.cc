// SPDX-License-Identifier: Apache-2.0
#include "bind_scans.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "convert.h"
#include "errors.h"
#include "index/alternatives.h"
#include "index/split.h"
#include "index/stacked.h"
#include "loader/scan.h"
#include "progress.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

ScanOptions scan_options(Progress& progress) {
  return {.progress = [&progress](uint64_t done, uint64_t all) { progress.tell(done, all); },
          .cancel = progress.cancel()};
}

nb::object numbers_of(const std::vector<uint64_t>& samples) {
  const std::vector<int64_t> numbers(samples.begin(), samples.end());
  return int64_array(numbers, {static_cast<int64_t>(numbers.size())}, "numpy");
}

nb::object find(const SourceHandle& s, const std::string& expression, nb::object function,
                const std::map<std::string, const FieldColumn*>& columns) {
  Progress progress(std::move(function));
  const GivenColumns given(columns.begin(), columns.end());
  Result<std::vector<uint64_t>> found = internal("not looked");
  {
    nb::gil_scoped_release release;
    found = find_samples(*s.source, expression, scan_options(progress), given);
  }
  progress.finish();
  return numbers_of(unwrap(std::move(found)));
}

nb::list split(const SourceHandle& s, const std::vector<double>& shares, uint64_t seed) {
  Result<std::vector<std::vector<uint64_t>>> parts = internal("not split");
  {
    nb::gil_scoped_release release;
    parts = split_by_key(*s.source, shares, seed);
  }
  nb::list out;
  for (const std::vector<uint64_t>& part : unwrap(std::move(parts))) out.append(numbers_of(part));
  return out;
}

std::vector<uint64_t> borders(const SourceHandle& s, const std::vector<double>& shares) {
  check(check_shares(shares));
  return split_by_order(s.source->size(), shares);
}

nb::object cell(const FieldColumn& column, size_t row) {
  if (column.present[row] == 0) return nb::none();
  if (column.type == ColumnType::kInt) return nb::int_(column.ints[row]);
  if (column.type == ColumnType::kFloat) return nb::float_(column.floats[row]);
  return to_str(column.texts[row]);
}

// A list for each name, with None where a sample has no such field.
nb::list columns(const SourceHandle& s, const std::vector<std::string>& names, uint64_t begin,
                 uint64_t end) {
  Result<std::vector<FieldColumn>> read = internal("not read");
  {
    nb::gil_scoped_release release;
    read = read_columns(*s.source, names, begin, end);
  }
  nb::list out;
  for (const FieldColumn& column : unwrap(std::move(read))) {
    nb::list cells;
    for (size_t row = 0; row < column.present.size(); ++row) cells.append(cell(column, row));
    out.append(cells);
  }
  return out;
}

ColumnStack stack_of(nb::handle d) {
  ColumnStack out{.name = nb::cast<std::string>(d["name"])};
  out.columns = nb::cast<std::vector<std::string>>(d["columns"]);
  out.dtype = parse_dtype(nb::cast<std::string>(d["dtype"]));
  const auto missing = nb::cast<std::string>(d["missing"]);
  out.missing = missing == "drop"    ? Missing::kDrop
                : missing == "error" ? Missing::kError
                                     : Missing::kFill;
  out.fill = nb::cast<double>(d["fill"]);
  return out;
}

// The data set with fields more, each several columns of numbers side by side.
SourceHandle stacked(const SourceHandle& s, nb::handle stacks) {
  std::vector<ColumnStack> list;
  for (nb::handle d : stacks) list.push_back(stack_of(d));
  SourceHandle out = s;
  Result<std::shared_ptr<const Source>> made = internal("not made");
  {
    nb::gil_scoped_release release;
    made = stack_columns(s.source, std::move(list));
  }
  out.source = unwrap(std::move(made));
  return out;
}

// The data set with fields more, each the first of several that a sample has.
SourceHandle either(const SourceHandle& s, nb::handle alternatives) {
  std::vector<Alternative> list;
  for (nb::handle d : alternatives)
    list.push_back({nb::cast<std::string>(d["name"]), nb::cast<std::vector<std::string>>(d["of"]),
                    nb::cast<bool>(d["replaces"])});
  SourceHandle out = s;
  for (const Alternative& each : list) {
    const bool objects = s.objects.contains(each.of.empty() ? "" : each.of.front());
    if (objects) out.objects.insert(each.name);
    if (objects && each.replaces && each.of.front() != each.name)
      out.objects.erase(each.of.front());
  }
  out.source = unwrap(with_alternatives(s.source, std::move(list)));
  return out;
}

}  // namespace

void bind_scans(nb::class_<SourceHandle>& source) {
  source
      .def("find", &find, nb::arg("expression"), nb::arg("progress") = nb::none(),
           nb::arg("columns") = std::map<std::string, const FieldColumn*>())
      .def("split_by_key", &split, nb::arg("shares"), nb::arg("seed"))
      .def("split_by_order", &borders, nb::arg("shares"))
      .def("columns", &columns, nb::arg("names"), nb::arg("begin"), nb::arg("end"))
      .def("either", &either, nb::arg("alternatives"))
      .def("stacked", &stacked, nb::arg("stacks"));
}

}  // namespace headrace::py

// SPDX-License-Identifier: Apache-2.0
//
// make_source: a data set whose index Python made: which files there are, where values lie in
// them, and values that the index holds itself.  kept_source: one that was made and kept before.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "convert.h"
#include "errors.h"
#include "format/splits.h"
#include "handles.h"
#include "index/manifest.h"
#include "index/part_builder.h"
#include "open/made_indexes.h"
#include "storage/open_store.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

using Numbers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::string text_of(nb::handle h) {
  // Names of files need not be UTF-8.
  const nb::bytes bytes = nb::steal<nb::bytes>(PyUnicode_EncodeFSDefault(h.ptr()));
  if (!bytes.is_valid()) throw nb::python_error();
  return {bytes.c_str(), bytes.size()};
}

std::vector<std::string> texts_of(nb::handle list) {
  std::vector<std::string> out;
  for (nb::handle each : list) out.push_back(text_of(each));
  return out;
}

Kind kind_of(const std::string& name) {
  const std::optional<Kind> kind = kind_named(name);
  if (!kind) throw nb::value_error(("no kind named " + name).c_str());
  return *kind;
}

// One field of all samples, as the dict of headrace/made.py describes it.
struct Column {
  explicit Column(nb::handle d, uint64_t samples, uint64_t files) {
    field.name = text_of(d["name"]);
    field.kind = kind_of(nb::cast<std::string>(d["kind"]));
    if (!d["dtype"].is_none()) field.dtype = parse_dtype(nb::cast<std::string>(d["dtype"]));
    for (nb::handle n : d["shape"])
      field.shape.push_back(n.is_none() ? kVaries : nb::cast<int64_t>(n));
    if (!d["values"].is_none()) {
      field.storage = Storage::kInline;
      values = nb::cast<nb::list>(d["values"]);
      if (values.size() != samples) throw nb::value_error("a column of another length");
      return;
    }
    file = numbers(d["file"], samples);
    if (!d["offset"].is_none()) {
      offset = numbers(d["offset"], samples);
      length = numbers(d["bytes"], samples);
    }
    for (const int64_t f : file)
      if (f >= static_cast<int64_t>(files)) throw nb::value_error("no such file");
  }

  static std::vector<int64_t> numbers(nb::handle h, uint64_t samples) {
    const auto array = nb::cast<Numbers>(h);
    if (array.size() != samples) throw nb::value_error("a column of another length");
    return {array.data(), array.data() + array.size()};
  }

  void add(uint64_t sample, uint32_t number, PartBuilder& part) const {
    if (field.storage == Storage::kInline) return add_inline(values[sample], number, part);
    if (file[sample] < 0) return;
    const auto which = static_cast<uint32_t>(file[sample]);
    if (offset.empty()) return part.add_whole_file(number, which);
    part.add_extent(number, {.offset = static_cast<uint64_t>(offset[sample]),
                             .stored = static_cast<uint64_t>(length[sample]),
                             .file = which});
  }

  void add_inline(nb::handle value, uint32_t number, PartBuilder& part) const {
    if (value.is_none()) return;
    if (field.kind == Kind::kInt) return part.add_int(number, nb::cast<int64_t>(value));
    if (field.kind == Kind::kFloat) return part.add_float(number, nb::cast<double>(value));
    const auto bytes = nb::cast<nb::bytes>(value);
    part.add_bytes(number, as_bytes(std::string_view(bytes.c_str(), bytes.size())));
  }

  Field field;
  std::vector<int64_t> file, offset, length;
  nb::list values;
};

// None: it is not kept.
std::optional<MadePlaces> places_of(nb::handle d, const std::string& format) {
  if (d.is_none()) return std::nullopt;
  return MadePlaces{text_of(d["root"]), texts_of(d["files"]), format,
                    nb::cast<std::string>(d["version"])};
}

SourceHandle handle_of_part(const PartPointer& part, const std::string& name,
                            const std::string& root) {
  const ManifestShard row = describe_part(*part, name);
  const std::vector<uint32_t> blocks = block_samples(*part);
  SourceHandle out;
  IndexedParts parts{.shards = ShardTable(part->head().format, false),
                     .schema = part->head().schema,
                     .store = unwrap(open_store(root)).store,
                     .parts = {part}};
  check(parts.shards.add(table_row(row, root, blocks)));
  out.format = part->head().format;
  out.shards.push_back({root, row.bytes, row.samples});
  out.whole = std::make_shared<const IndexedSource>(std::move(parts));
  out.source = out.whole;
  return out;
}

SourceHandle make(nb::dict d) {
  const auto samples = nb::cast<uint64_t>(d["samples"]);
  const std::vector<std::string> files = texts_of(d["files"]);
  std::vector<Column> columns;
  for (nb::handle column : d["fields"]) columns.emplace_back(column, samples, files.size());
  const bool whole = std::all_of(columns.begin(), columns.end(), [](const Column& c) {
    return c.field.storage == Storage::kInline || c.offset.empty();
  });
  PartHead head{.format = nb::cast<std::string>(d["format"]),
                .has_files = !files.empty(),
                .whole_files = whole && !files.empty(),
                .own_keys = true};
  const std::optional<MadePlaces> places = places_of(d["keep"], head.format);
  if (places) check(stamp_made_part(*places, files, head));
  PartBuilder part(std::move(head));
  std::vector<uint32_t> numbers;
  for (const Column& column : columns) numbers.push_back(part.field(column.field));
  for (const std::string& file : files) part.add_file(file);
  const auto keys = nb::cast<nb::list>(d["keys"]);
  if (keys.size() != samples) throw nb::value_error("another number of keys");
  for (uint64_t s = 0; s < samples; ++s) {
    for (size_t c = 0; c < columns.size(); ++c) columns[c].add(s, numbers[c], part);
    part.end_sample(text_of(keys[s]));
  }
  const PartPointer made = unwrap(part.finish());
  SourceHandle out = handle_of_part(made, nb::cast<std::string>(d["name"]), text_of(d["root"]));
  out.notices = texts_of(d["notices"]);
  out.classes = texts_of(d["classes"]);
  if (places)
    if (const std::string notice = keep_made_part(*places, *made); !notice.empty())
      out.notices.push_back(notice);
  return out;
}

// None where there is none that is current.
std::optional<SourceHandle> kept(nb::dict d, const std::string& format) {
  const std::optional<MadePlaces> places = places_of(d, format);
  Result<PartPointer> part = find_made_part(*places);
  if (!part.ok()) return std::nullopt;
  return handle_of_part(part.value(), "", places->root);
}

}  // namespace

void bind_made(nb::module_& m) {
  m.def("make_source", &make, nb::arg("description"));
  m.def("kept_source", &kept, nb::arg("places"), nb::arg("format"));
  m.def("is_picture", [](const std::string& extension) { return is_picture_extension(extension); });
  m.def("is_split", [](const std::string& name) { return is_split_name(name); });
  m.def("split_in", [](const std::string& name) { return split_in_name(name); });
  m.def("without_split", [](const std::string& name) { return without_split(name); });
}

}  // namespace headrace::py

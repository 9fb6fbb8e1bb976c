// SPDX-License-Identifier: Apache-2.0
#include "array/file_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>

#include "array/flat_values.h"
#include "array/heap_values.h"

namespace headrace {
namespace {

constexpr std::array<std::pair<std::string_view, TextEnd>, 3> kTextEnds = {
    {{"first nul", TextEnd::kFirstNul}, {"nuls", TextEnd::kNuls}, {"blanks", TextEnd::kBlanks}}};

Status wrong(std::string_view what) {
  return corrupt(fmt::format("a description of an array without {}", what));
}

std::vector<std::byte> bytes_of(const Tree& d, std::string_view name) {
  const Tree* found = d.find(name);
  if (found == nullptr) return {};
  const Bytes bytes = found->is_numbers() ? found->elements() : as_bytes(found->text());
  return {bytes.begin(), bytes.end()};
}

Tree bytes_tree(const std::vector<std::byte>& bytes) {
  return Tree::bytes(bytes);
}

// Numbers in a list or a tuple; nothing where there are not so many.
template <size_t N>
std::optional<std::array<int64_t, N>> row_of(const Tree& d, std::string_view name) {
  const std::vector<int64_t> row = d.ints_of(name);
  if (row.size() != N) return std::nullopt;
  std::array<int64_t, N> out{};
  std::copy(row.begin(), row.end(), out.begin());
  return out;
}

Result<FilterChain> chain_of(const Tree* list) {
  FilterChain chain;
  if (list == nullptr) return chain;
  for (const Tree& step : list->items()) {
    if (step.items().size() != 2) return wrong("filters as they are listed");
    const std::optional<ChunkFilter> filter = chunk_filter_named(step.items()[0].text());
    if (!filter) return unsupported(fmt::format("there is no filter '{}'", step.items()[0].text()));
    chain.push_back({*filter, static_cast<uint32_t>(step.items()[1].integer())});
  }
  return chain;
}

// "shuffle:4 zlib" of filters.h, taken apart.
Tree chain_tree(const FilterChain& chain) {
  Tree out = Tree::list();
  for (const FilterStep& step : chain) {
    std::string name = chain_text({{step.filter, 0}});
    out.add(Tree::list({Tree(std::move(name)), Tree(int64_t{step.parameter})}));
  }
  return out;
}

Status take_places(const Tree& d, Array& out) {
  const Tree* places = d.find("places");
  if (places == nullptr) return {};
  if (!places->is_numbers() || places->shape().size() != 2 || places->shape()[1] != 4 ||
      places->elements().size() % (4 * sizeof(uint64_t)) != 0)
    return wrong("a table of chunks");
  const std::vector<uint64_t> rows = d.counts_of("places");
  out.places.reserve(rows.size() / 4);
  for (size_t i = 0; i + 3 < rows.size(); i += 4)
    out.places.push_back({static_cast<uint32_t>(rows[i]), static_cast<uint32_t>(rows[i + 1]),
                          rows[i + 2], rows[i + 3]});
  return {};
}

Tree places_tree(const Array& array) {
  std::vector<uint64_t> rows;
  rows.reserve(4 * array.places.size());
  for (const ChunkPlace& p : array.places)
    rows.insert(rows.end(), {p.file, p.skipped, p.offset, p.stored});
  return Tree::numbers("<u8", {static_cast<int64_t>(array.places.size()), 4},
                       std::as_bytes(std::span(rows)));
}

// The numbers of an attribute, whatever they are written as; none of a text.
std::vector<double> numbers_of(const Tree& attributes, std::string_view name) {
  const Tree* found = attributes.find(name);
  std::vector<double> out;
  if (found == nullptr) return out;
  const auto one = [&out](const Tree& v) {
    if (v.type() == Tree::Type::kInt || v.type() == Tree::Type::kReal) out.push_back(v.real());
  };
  one(*found);
  for (const Tree& item : found->items()) one(item);
  if (found->is_list() && out.size() != found->items().size()) out.clear();
  if (!found->is_numbers() || found->text().size() != 3) return out;
  const char kind = found->text()[1];
  const size_t item = static_cast<size_t>(found->text()[2] - '0');
  if (item < 1 || item > 8) return out;
  for (Bytes left = found->elements(); left.size() >= item; left = left.subspan(item)) {
    uint64_t raw = 0;
    std::memcpy(&raw, left.data(), item);
    if (kind == 'f' && item == 4) out.push_back(load_le<float>(left));
    if (kind == 'f' && item == 8) out.push_back(load_le<double>(left));
    if (kind == 'u') out.push_back(static_cast<double>(raw));
    if (kind == 'i') {
      const auto shift = static_cast<int>(64 - 8 * item);
      out.push_back(static_cast<double>(static_cast<int64_t>(raw << shift) >> shift));
    }
  }
  return out;
}

std::optional<double> number_of(const Tree& attributes, std::string_view name) {
  const std::vector<double> all = numbers_of(attributes, name);
  return all.size() == 1 ? std::optional<double>(all[0]) : std::nullopt;
}

// Classic NetCDF has no unsigned types, and others lack signed ones.
void take_sign(const Tree& attributes, Array& out, std::vector<double>& absent) {
  std::string word = attributes.text_of("_Unsigned");
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const std::string name(dtype_name(out.dtype));
  const double range = std::ldexp(1.0, static_cast<int>(8 * size_of(out.dtype)));
  if (word == "true" && name[0] == 'i') {
    out.dtype = dtype_named("u" + name.substr(1)).value_or(out.dtype);
    for (double& v : absent) v = v < 0 ? v + range : v;
  } else if (word == "false" && name[0] == 'u') {
    out.dtype = dtype_named("i" + name.substr(1)).value_or(out.dtype);
    for (double& v : absent) v = v >= range / 2 ? v - range : v;
  }
}

std::shared_ptr<const ValueTable> literal_values(const Tree& d) {
  auto out = std::make_shared<ValueTable>();
  out->literal = bytes_of(d, "literal");
  for (const uint64_t bytes : d.counts_of("lengths")) {
    out->extents.push_back({out->total_bytes, bytes});
    out->total_bytes += bytes;
  }
  return out;
}

Status check_listed(const Array& array, size_t files) {
  for (const ChunkPlace& place : array.places)
    if (place.stored != 0 && place.file >= files)
      return corrupt("a chunk in a file that is not listed");
  return {};
}

}  // namespace

Result<std::shared_ptr<Array>> array_of(const Tree& d) {
  auto out = std::make_shared<Array>();
  out->name = d.text_of("name");
  const std::optional<DType> dtype = dtype_named(d.text_of("dtype"));
  if (!dtype) return wrong("a type");
  out->dtype = *dtype;
  out->big_endian = d.true_of("big_endian");
  out->fortran = d.true_of("fortran");
  out->shape = d.ints_of("shape");
  out->chunk = d.ints_of("chunk");
  out->fill = bytes_of(d, "fill");
  HEADRACE_ASSIGN(out->filters, chain_of(d.find("filters")));
  HEADRACE_TRY(take_places(d, *out));
  out->packed = d.true_of("packed");
  if (const Tree* scale = d.find("scale")) out->scale = scale->real();
  if (const Tree* offset = d.find("offset")) out->offset = offset->real();
  if (const Tree* missing = d.find("missing")) out->missing = missing->real();
  if (const Tree* also = d.find("also_missing"))
    for (const Tree& v : also->items()) out->also_missing.push_back(v.real());
  if (const auto layer = row_of<3>(d, "layer"))
    out->layer = {static_cast<size_t>((*layer)[0]), (*layer)[1], (*layer)[2]};
  if (const auto record = row_of<3>(d, "record"))
    out->record = {static_cast<uint64_t>((*record)[0]), static_cast<uint64_t>((*record)[1]),
                   static_cast<uint32_t>((*record)[2])};
  if (const auto sums = row_of<2>(d, "crc"))
    out->sum = MemberSum{static_cast<uint32_t>((*sums)[0]), static_cast<uint32_t>((*sums)[1])};
  out->literal = bytes_of(d, "literal");
  for (const auto& [name, end] : kTextEnds)
    if (d.text_of("text_end") == name) out->text_end = end;
  return out;
}

Result<FileArray> file_array_of(const Tree& d) {
  FileArray out;
  out.why = d.text_of("why");
  out.dims = d.texts_of("dims");
  if (out.why.empty()) {
    HEADRACE_ASSIGN(out.array, array_of(d));
    if (out.dims.size() != out.array->shape.size()) return wrong("a name for each axis");
  }
  out.array->name = d.text_of("name");
  const std::string kind = d.text_of("kind");
  out.kind = kind == "text" ? Kind::kText : kind == "bytes" ? Kind::kBytes : Kind::kArray;
  out.inner = static_cast<size_t>(std::max<int64_t>(0, d.integer_of("inner")));
  out.files = d.texts_of("files");
  out.file_bytes = d.counts_of("file_bytes");
  if (const Tree* attributes = d.find("attributes"); attributes != nullptr && attributes->is_map())
    out.attributes = *attributes;
  if (const Tree* values = d.find("values")) out.values = *values;
  out.is_found = !d.true_of("unfound");
  out.by_python = d.text_of("by_python");
  out.kept = bytes_of(d, "kept");
  if (out.is_found && out.why.empty()) HEADRACE_TRY(check_listed(*out.array, out.files.size()));
  return out;
}

Tree tree_of(const FileArray& stored) {
  const Array& a = *stored.array;
  Tree d = Tree::map();
  d.set("name", Tree(a.name));
  d.set("dims", Tree::texts(stored.dims));
  d.set("shape", Tree::ints(a.shape));
  d.set("chunk", Tree::ints(a.chunk));
  d.set("dtype", Tree(std::string(dtype_name(a.dtype))));
  d.set("big_endian", Tree(a.big_endian));
  d.set("fortran", Tree(a.fortran));
  d.set("fill", bytes_tree(a.fill));
  d.set("filters", chain_tree(a.filters));
  if (stored.is_found)
    d.set("places", places_tree(a));
  else
    d.set("unfound", Tree(true));
  d.set("files", Tree::texts(stored.files));
  if (!stored.file_bytes.empty()) d.set("file_bytes", Tree::counts(stored.file_bytes));
  d.set("packed", Tree(a.packed));
  d.set("scale", Tree(a.scale));
  d.set("offset", Tree(a.offset));
  if (a.missing) d.set("missing", Tree(*a.missing));
  Tree also = Tree::list();
  for (const double v : a.also_missing) also.add(Tree(v));
  d.set("also_missing", std::move(also));
  d.set("why", Tree(stored.why));
  d.set("attributes", stored.attributes);
  d.set("kind", Tree(stored.kind == Kind::kText    ? "text"
                     : stored.kind == Kind::kBytes ? "bytes"
                                                   : "array"));
  d.set("inner", Tree(static_cast<int64_t>(stored.inner)));
  for (const auto& [name, end] : kTextEnds)
    if (a.text_end == end) d.set("text_end", Tree(name));
  if (!stored.by_python.empty()) d.set("by_python", Tree(stored.by_python));
  return d;
}

void unpack_by(const Tree& attributes, FileArray& out) {
  Array& a = *out.array;
  out.attributes = Tree::map();
  for (size_t i = 0; i < attributes.names().size(); ++i)
    if (is_plain_attribute(attributes.names()[i]))
      out.attributes.set(attributes.names()[i], attributes.items()[i]);
  std::vector<double> absent = numbers_of(attributes, "_FillValue");
  const std::vector<double> more = numbers_of(attributes, "missing_value");
  absent.insert(absent.end(), more.begin(), more.end());
  std::erase_if(absent, [](double v) { return std::isnan(v); });  // NaN already
  take_sign(attributes, a, absent);
  if (a.dtype == DType::kF16) return;
  if (a.dtype == DType::kF32)  // 1e20 is written as either
    for (double& v : absent) v = static_cast<double>(static_cast<float>(v));
  std::vector<double> distinct;
  for (const double v : absent)
    if (std::find(distinct.begin(), distinct.end(), v) == distinct.end()) distinct.push_back(v);
  if (!distinct.empty()) {
    a.missing = distinct[0];
    a.also_missing.assign(distinct.begin() + 1, distinct.end());
  }
  const std::optional<double> scale = number_of(attributes, "scale_factor");
  const std::optional<double> offset = number_of(attributes, "add_offset");
  const bool is_real = a.dtype == DType::kF32 || a.dtype == DType::kF64;
  if (!scale && !offset && !(is_real && a.missing)) return;
  a.packed = true;
  a.scale = scale.value_or(1.0);
  a.offset = offset.value_or(-0.0);
}

bool is_plain_attribute(std::string_view name) {
  constexpr std::array<std::string_view, 6> kOfAxes = {
      "DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "CLASS", "NAME", "_ARRAY_DIMENSIONS"};
  return std::find(kOfAxes.begin(), kOfAxes.end(), name) == kOfAxes.end() &&
         !name.starts_with("_Netcdf4") && !name.starts_with("_nc3") &&
         !name.starts_with("_NCProperties");
}

Result<std::shared_ptr<const ValueTable>> find_values(const Tree& d, uint32_t first_file,
                                                      const std::vector<std::string>& files,
                                                      const Store& store, const RunJobs& run) {
  if (d.find("literal") != nullptr) return literal_values(d);
  if (d.true_of("by_number")) {
    auto table = std::make_shared<ValueTable>();
    table->file = first_file;
    table->by_number = true;
    return std::shared_ptr<const ValueTable>(table);
  }
  if (const Tree* flat_tree = d.find("flat")) {
    const Tree* offsets_tree = d.find("offsets");
    if (offsets_tree == nullptr) return wrong("offsets of its values");
    HEADRACE_ASSIGN(const std::shared_ptr<Array> flat, array_of(*flat_tree));
    HEADRACE_ASSIGN(const std::shared_ptr<Array> offsets, array_of(*offsets_tree));
    HEADRACE_TRY(check_listed(*flat, files.size()));
    HEADRACE_TRY(check_listed(*offsets, files.size()));
    return read_flat_values(*flat, *offsets, files, store);
  }
  const Tree* references = d.find("references");
  if (references == nullptr) return wrong("values");
  HEADRACE_ASSIGN(const std::shared_ptr<Array> array, array_of(*references));
  HEADRACE_TRY(check_listed(*array, files.size()));
  if (first_file >= files.size()) return corrupt("a heap in a file that is not listed");
  HeapValues values{.references = *array};
  values.item_bytes = static_cast<uint32_t>(d.integer_of("item_bytes"));
  values.file = first_file;
  values.form.address_bytes = static_cast<uint32_t>(d.integer_of("address_bytes"));
  values.form.size_bytes = static_cast<uint32_t>(d.integer_of("size_bytes"));
  values.form.base = static_cast<uint64_t>(d.integer_of("base"));
  HEADRACE_ASSIGN(const FileInfo info, store.stat(files[values.file]));
  values.form.file_bytes = info.bytes;
  return read_heap_values(values, files, store, run);
}

}  // namespace headrace

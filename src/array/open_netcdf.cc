// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "array/netcdf_classic.h"
#include "array/open_file.h"
#include "base/npy.h"
#include "base/utf8.h"

namespace headrace {
namespace {

// The netCDF library writes UTF-8, others wrote Latin-1; some end texts with zeros.
std::string text_of(Bytes values) {
  std::string_view text = as_text(values);
  while (text.ends_with('\0')) text.remove_suffix(1);
  if (valid_utf8_prefix(as_bytes(text)) == text.size()) return std::string(text);
  std::string out;
  for (const char c : text) put_utf8(out, static_cast<unsigned char>(c));
  return out;
}

Tree value_of(const NetcdfAttribute& attribute) {
  if (!attribute.dtype) return Tree(text_of(attribute.values));
  std::vector<std::byte> values = attribute.values;
  const size_t item = size_of(*attribute.dtype);
  for (size_t at = 0; at + item <= values.size(); at += item)
    std::reverse(values.begin() + static_cast<std::ptrdiff_t>(at),
                 values.begin() + static_cast<std::ptrdiff_t>(at + item));
  const auto count = static_cast<int64_t>(values.size() / item);
  // A list of one is a number.
  return Tree::numbers(npy_descr(*attribute.dtype),
                       count == 1 ? std::vector<int64_t>() : std::vector<int64_t>{count}, values);
}

Tree map_of(const std::vector<NetcdfAttribute>& attributes) {
  Tree out = Tree::map();
  for (const NetcdfAttribute& a : attributes) out.set(a.name, value_of(a));
  return out;
}

Tree plain_map_of(const std::vector<NetcdfAttribute>& attributes) {
  Tree out = Tree::map();
  for (const NetcdfAttribute& a : attributes)
    if (is_plain_attribute(a.name)) out.set(a.name, value_of(a));
  return out;
}

// Each record is a chunk among those of other variables, unless they lie one after the other.
Status take_places(const NetcdfVariable& v, Array& out) {
  out.chunk = out.shape;
  for (int64_t& n : out.chunk) n = std::max<int64_t>(1, n);
  if (v.has_records && v.stride != v.bytes) {
    out.chunk[0] = 1;
    HEADRACE_ASSIGN(const Extents grid, chunk_grid(out.name, out.shape, out.chunk));
    const auto records = static_cast<uint64_t>(elements_in(grid));
    for (uint64_t r = 0; r < records; ++r)
      out.places.push_back({0, 0, v.begin + r * v.stride, v.bytes});
    return {};
  }
  const auto records = static_cast<uint64_t>(v.has_records ? v.shape[0] : 1);
  if (records > 0) out.places.push_back({0, 0, v.begin, records * v.bytes});
  return {};
}

Result<FileArray> stored_of(const NetcdfFile& file, const NetcdfVariable& v) {
  FileArray out;
  Array& array = *out.array;
  array.name = v.name;
  array.shape = v.shape;
  array.dtype = v.dtype.value_or(DType::kU8);
  array.big_endian = v.dtype.has_value();
  for (const size_t n : v.dims) out.dims.push_back(file.dimensions[n]);
  HEADRACE_TRY(take_places(v, array));
  if (v.dtype) {
    unpack_by(map_of(v.attributes), out);
    return out;
  }
  out.kind = Kind::kText;
  out.inner = 1;
  array.text_end = TextEnd::kNuls;
  out.attributes = plain_map_of(v.attributes);
  if (v.shape.empty()) out.why = "it is one letter (char)";
  if (v.shape.size() > 2) out.why = "it holds several texts (char) a sample";
  return out;
}

}  // namespace

Result<OpenedFile> open_netcdf_classic(const Store& store, const std::string& path) {
  HEADRACE_ASSIGN(const FileInfo info, store.stat(path));
  HEADRACE_ASSIGN(const NetcdfFile file, read_netcdf_classic(store, path));
  OpenedFile out{.looked_at = {info}};
  out.attributes = plain_map_of(file.attributes);
  for (const NetcdfVariable& v : file.variables) {
    Result<FileArray> stored = stored_of(file, v);
    if (!stored.ok()) return stored.status().in_file(path);
    stored.value().files = {path};
    out.arrays.push_back(std::move(stored).value());
  }
  return out;
}

}  // namespace headrace

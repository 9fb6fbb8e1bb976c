// SPDX-License-Identifier: Apache-2.0
//
// What headrace/writing write files of arrays with: regions read, chunks packed, files written.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "array_description.h"
#include "arrays.h"
#include "convert.h"
#include "errors.h"
#include "handles.h"
#include "pack/array_reader.h"
#include "pack/chunk_writer.h"
#include "pack/sample_columns.h"
#include "pack/shard_writer.h"
#include "pack_options.h"
#include "storage/open_store.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

using Memory = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Bytes bytes_of(const Memory& memory) {
  return {reinterpret_cast<const std::byte*>(memory.data()), memory.size()};
}

nb::object as_array(Buffer buffer, DType dtype = DType::kU8) {
  const auto count = static_cast<int64_t>(buffer.size() / size_of(dtype));
  return to_array(std::make_shared<Buffer>(std::move(buffer)), dtype, {count}, "numpy");
}

struct ReaderHandle {
  std::unique_ptr<const ArrayReader> reader;
};

ReaderHandle array_reader(nb::handle d) {
  const std::shared_ptr<const Store> store = store_of(d);
  return {unwrap(ArrayReader::make(description_of(d, *store), store))};
}

nb::object read_region(const ReaderHandle& self, size_t variable, const Extents& begin,
                       const Extents& size, unsigned threads) {
  Buffer out;
  Status status;
  {
    nb::gil_scoped_release release;
    status = self.reader->read(variable, {begin, size}, threads, out);
  }
  check(status);
  return as_array(std::move(out));
}

ArrayTarget target_of(const nb::dict& d) {
  ArrayTarget out;
  out.shape = nb::cast<Extents>(d["shape"]);
  out.chunk = nb::cast<Extents>(d["chunk"]);
  out.shard = nb::cast<Extents>(d["shard"]);
  const auto fill = nb::cast<nb::bytes>(d["fill"]);
  const Bytes element = as_bytes(std::string_view(fill.c_str(), fill.size()));
  out.fill.assign(element.begin(), element.end());
  const auto name = nb::cast<std::string>(d["compressor"]);
  const std::optional<Compressor> compressor = compressor_named(name);
  if (!compressor) check(invalid(fmt::format("there is no compressor '{}'", name)));
  out.encoding = {*compressor, nb::cast<int>(d["level"]), out.fill.size(),
                  nb::cast<bool>(d["shuffle"])};
  return out;
}

// (place in the grid, bytes) of each chunk that holds more than the fill value.
nb::list encode_slab(const nb::dict& d, const Extents& begin, const Extents& size,
                     const Memory& data, unsigned threads) {
  const ArrayTarget target = target_of(d);
  Result<std::vector<EncodedChunk>> made = internal("not packed");
  {
    nb::gil_scoped_release release;
    made = encode_chunks(target, {begin, size}, bytes_of(data), threads);
  }
  nb::list out;
  for (EncodedChunk& chunk : unwrap(std::move(made)))
    if (!chunk.is_fill)
      out.append(nb::make_tuple(nb::cast(chunk.at), as_array(std::move(chunk.bytes))));
  return out;
}

// (name, bytes, checksum) of each file.
nb::list write_slab(const nb::dict& d, const std::string& folder, const std::string& name,
                    const Extents& begin, const Extents& size, const Memory& data,
                    unsigned threads) {
  const ArrayTarget target = target_of(d);
  Result<std::vector<PackedFile>> made = internal("not written");
  {
    nb::gil_scoped_release release;
    made = write_chunk_files(target, folder, name, {begin, size}, bytes_of(data), threads);
  }
  nb::list out;
  for (const PackedFile& file : unwrap(std::move(made)))
    out.append(nb::make_tuple(to_str(file.name), file.bytes, file.crc32c));
  return out;
}

// Units, and bytes of files, that one sample reads, on average over `samples` of them.
std::pair<double, double> read_cost(const SourceHandle& handle, uint64_t samples) {
  const Source& source = *handle.source;
  std::vector<uint32_t> fields(source.schema().size());
  for (uint32_t f = 0; f < fields.size(); ++f) fields[f] = f;
  Request request;
  uint64_t units = 0;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t sample = samples < 2 ? 0 : i * (source.size() - 1) / (samples - 1);
    check(
        source.needs({.sample = sample, .fields = fields, .draws = Key(i).with("cost")}, request));
    for (const Unit& unit : request.units) {
      ++units;
      bytes += unit.stored_bytes != kWholeFile
                   ? unit.stored_bytes
                   : unwrap(source.store().stat(source.file_path(unit.file))).bytes;
    }
  }
  const auto n = static_cast<double>(samples);
  return {static_cast<double>(units) / n, static_cast<double>(bytes) / n};
}

uint32_t file_checksum(const std::string& path) {
  Result<uint32_t> found = uint32_t{0};
  {
    nb::gil_scoped_release release;
    const Result<OpenedUrl> at = open_store(path);
    found = at.ok() ? checksum_of(*at.value().store, at.value().path) : at.status();
  }
  return unwrap(std::move(found));
}

struct ColumnsHandle {
  std::unique_ptr<SampleColumns> columns;
};

ColumnsHandle sample_columns(const SourceHandle& source, const nb::dict& options) {
  return {unwrap(SampleColumns::make(source.source, pack_options(options)))};
}

nb::list column_fields(const ColumnsHandle& self) {
  nb::list out;
  for (const Field& field : self.columns->schema()) {
    nb::dict d;
    d["name"] = to_str(field.name);
    d["kind"] = to_str(kind_name(field.kind));
    d["in_index"] = field.storage == Storage::kInline;
    d["dtype"] = field.dtype ? to_str(dtype_name(*field.dtype)) : to_str("");
    d["shape"] = nb::cast(field.shape);
    out.append(d);
  }
  return out;
}

nb::tuple column_pair(ValueColumn column) {
  nb::object lengths =
      int64_array(column.lengths, {static_cast<int64_t>(column.lengths.size())}, "numpy");
  return nb::make_tuple(as_array(std::move(column.bytes)), lengths);
}

// Keys, then each field: (bytes, lengths).
nb::list read_columns(ColumnsHandle& self, uint64_t begin, uint64_t end) {
  ColumnWave wave;
  Status status;
  {
    nb::gil_scoped_release release;
    status = self.columns->read(begin, end, wave);
  }
  check(status);
  nb::list out;
  out.append(column_pair(std::move(wave.keys)));
  for (ValueColumn& column : wave.fields) out.append(column_pair(std::move(column)));
  return out;
}

uint64_t mean_bytes(ColumnsHandle& self) {
  Result<uint64_t> found = uint64_t{0};
  {
    nb::gil_scoped_release release;
    found = self.columns->mean_bytes();
  }
  return unwrap(std::move(found));
}

}  // namespace

void bind_array_pack(nb::module_& m) {
  nb::class_<ReaderHandle>(m, "ArrayReader")
      .def("read", &read_region)
      .def("shape", [](const ReaderHandle& self, size_t v) { return self.reader->shape(v); })
      .def("dtype", [](const ReaderHandle& self,
                       size_t v) { return to_str(dtype_name(self.reader->dtype(v))); })
      .def("unpacks", [](const ReaderHandle& self, size_t v) { return self.reader->unpacks(v); });
  m.def("array_reader", &array_reader);
  m.def("encode_slab", &encode_slab);
  m.def("write_slab", &write_slab);
  m.def("read_cost", &read_cost);
  m.def("file_checksum", &file_checksum);
  nb::class_<ColumnsHandle>(m, "SampleColumns")
      .def_prop_ro("fields", &column_fields)
      .def_prop_ro("size", [](const ColumnsHandle& self) { return self.columns->size(); })
      .def("mean_bytes", &mean_bytes)
      .def("read", &read_columns);
  m.def("sample_columns", &sample_columns);
}

}  // namespace headrace::py

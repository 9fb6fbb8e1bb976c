// SPDX-License-Identifier: Apache-2.0
#include "index/memory_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/half.h"
#include "storage/read_each.h"

namespace headrace {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{4} << 20;
constexpr uint64_t kMostInBlock = uint64_t{1} << 20;

template <typename T>
T load(const std::byte* at) {
  T out;
  std::memcpy(&out, at, sizeof(T));
  return out;
}

// A whole number of the memory as the index holds them: int64.
int64_t whole_at(const std::byte* at, DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return load<uint8_t>(at);
    case DType::kI8:
      return load<int8_t>(at);
    case DType::kU16:
      return load<uint16_t>(at);
    case DType::kI16:
      return load<int16_t>(at);
    case DType::kU32:
      return load<uint32_t>(at);
    case DType::kI32:
      return load<int32_t>(at);
    default:
      return load<int64_t>(at);
  }
}

double real_at(const std::byte* at, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return from_f16(load<uint16_t>(at));
    case DType::kBF16:
      return from_bf16(load<uint16_t>(at));
    case DType::kF32:
      return load<float>(at);
    default:
      return load<double>(at);
  }
}

bool is_number(const MemoryColumn& column) {
  return column.field.kind == Kind::kInt || column.field.kind == Kind::kFloat;
}

uint64_t bytes_in(const MemoryColumn& column, uint64_t samples) {
  return column.offsets != nullptr ? column.offsets[samples] : column.row_bytes * samples;
}

// The memory of the columns as files that are lent: column c is file "name.field".  Thread-safe.
class ColumnStore final : public Store {
 public:
  explicit ColumnStore(const MemoryColumns& columns) {
    for (const MemoryColumn& column : columns.columns)
      files_.push_back({path_of(columns, column),
                        Bytes(column.data, bytes_in(column, columns.samples)), column.keep});
  }

  static std::string path_of(const MemoryColumns& columns, const MemoryColumn& column) {
    return columns.name + "." + column.field.name;
  }

  void read(std::span<ReadRequest> requests) const override {
    read_each(requests, [&](ReadRequest& request) { return read_one(request); });
  }
  bool read_if_resident(ReadRequest& request) const override { return read_one(request).ok(); }

  std::optional<Pin> pin(std::string_view path, uint64_t offset, uint64_t length) const override {
    const File* file = find(path);
    if (file == nullptr || !is_inside(*file, offset, length)) return std::nullopt;
    if (length == kWholeFile) return Pin(file->bytes, file->keep);
    return Pin(file->bytes.subspan(offset, length), file->keep);
  }

  StoreCost cost(const std::string&) const override { return {}; }

  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override {
    std::vector<Result<FileInfo>> out;
    for (const std::string& path : paths) {
      const File* file = find(path);
      if (file == nullptr)
        out.emplace_back(not_found("no such column").in_file(path));
      else
        out.emplace_back(FileInfo{.path = path, .bytes = file->bytes.size()});
    }
    return out;
  }
  Result<ListPage> list_page(const std::string& folder, const std::string&) const override {
    return not_found("columns in memory have no folders").in_file(folder);
  }

 private:
  struct File {
    std::string path;
    Bytes bytes;
    std::shared_ptr<const void> keep;
  };

  const File* find(std::string_view path) const {
    const auto it = std::find_if(files_.begin(), files_.end(),
                                 [path](const File& file) { return file.path == path; });
    return it == files_.end() ? nullptr : &*it;
  }
  static bool is_inside(const File& file, uint64_t offset, uint64_t length) {
    if (length == kWholeFile) return offset == 0;
    return offset <= file.bytes.size() && length <= file.bytes.size() - offset;
  }
  Status read_one(ReadRequest& request) const {
    const std::optional<Pin> found = pin(request.path, request.offset, request.length);
    if (!found) return corrupt("read past the end of the column").at(request.offset);
    return fill_request(request, found->bytes());
  }

  std::vector<File> files_;
};

// Immutable, hence thread-safe.
class MemorySource final : public Source {
 public:
  explicit MemorySource(MemoryColumns columns) : columns_(std::move(columns)), store_(columns_) {
    uint64_t bytes = 0;
    for (const MemoryColumn& column : columns_.columns) {
      schema_.push_back(column.field);
      bytes += bytes_in(column, columns_.samples);
    }
    blocks_.bytes = bytes;
    const uint64_t mean = std::max<uint64_t>(1, bytes / std::max<uint64_t>(1, columns_.samples));
    const uint64_t block = std::clamp<uint64_t>(kBlockBytes / mean, 1, kMostInBlock);
    for (uint64_t at = 0; at < columns_.samples; at += block)
      blocks_.samples.push_back(
          static_cast<uint32_t>(std::min<uint64_t>(block, columns_.samples - at)));
  }

  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return columns_.samples; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return columns_.fingerprint; }

  Status needs(const SampleAsk& ask, Request& out) const override {
    out.clear();
    if (ask.sample >= columns_.samples) return internal("no such sample");
    for (const uint32_t field : ask.fields) {
      if (field >= columns_.columns.size()) return internal("no such field");
      add_value(field, ask.sample, out);
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    if (ask.want_key) out.key = key(ask.sample);
    return {};
  }

  const Store& store() const override { return store_; }
  std::string file_path(uint32_t file) const override {
    return file < columns_.columns.size() ? ColumnStore::path_of(columns_, columns_.columns[file])
                                          : std::string();
  }
  std::string key(uint64_t sample) const override { return std::to_string(sample); }

 private:
  void add_value(uint32_t field, uint64_t row, Request& out) const {
    const MemoryColumn& column = columns_.columns[field];
    if (column.present != nullptr && column.present[row] == 0) return;
    if (column.offsets != nullptr) {
      const uint64_t begin = column.offsets[row];
      return add_bytes(field, column.data + begin, begin, column.offsets[row + 1] - begin, out);
    }
    const std::byte* at = column.data + static_cast<int64_t>(row) * column.stride;
    if (!is_number(column))
      return add_bytes(field, at, row * column.row_bytes, column.row_bytes, out);
    if (column.field.kind == Kind::kInt) {
      const int64_t number = whole_at(at, *column.field.dtype);
      return add_inline(&number, sizeof(number), out);
    }
    const double number = real_at(at, *column.field.dtype);
    add_inline(&number, sizeof(number), out);
  }

  static void add_inline(const void* from, uint64_t length, Request& out) {
    const uint64_t begin = out.inline_bytes.size();
    out.inline_bytes.resize(begin + length);
    if (length > 0) std::memcpy(out.inline_bytes.data() + begin, from, length);
    out.pieces.push_back({.unit = kInlineUnit, .begin = begin, .length = length});
  }

  static void add_bytes(uint32_t field, const std::byte* at, uint64_t offset, uint64_t length,
                        Request& out) {
    if (length <= kInlineRow) return add_inline(at, length, out);
    out.pieces.push_back({.unit = static_cast<uint32_t>(out.units.size())});
    out.units.push_back(
        {.file = field, .offset = offset, .stored_bytes = length, .decoded_bytes = length});
  }

  const MemoryColumns columns_;
  const ColumnStore store_;
  Schema schema_;
  Blocks blocks_;
};

Status check(const MemoryColumn& column, uint64_t samples) {
  const Field& field = column.field;
  const auto named = [&field](const char* what) {
    return invalid(fmt::format("column '{}': {}", field.name, what));
  };
  if (column.data == nullptr && bytes_in(column, samples) > 0) return named("no memory");
  if (column.offsets != nullptr) {
    if (!std::is_sorted(column.offsets, column.offsets + samples + 1))
      return named("the places of its values are out of order");
    return {};
  }
  if (is_number(column) || field.kind == Kind::kArray) {
    if (!field.dtype) return named("numbers without a type");
    if (is_number(column) && column.row_bytes != size_of(*field.dtype))
      return named("a number of another size");
  }
  if (column.row_bytes > kInlineRow && column.stride != static_cast<int64_t>(column.row_bytes))
    return named("rows that do not follow each other");
  return {};
}

}  // namespace

Result<std::shared_ptr<const Source>> memory_source(MemoryColumns columns) {
  static_assert(std::endian::native == std::endian::little, "the memory is little-endian");
  for (const MemoryColumn& column : columns.columns) HEADRACE_TRY(check(column, columns.samples));
  return std::shared_ptr<const Source>(std::make_shared<const MemorySource>(std::move(columns)));
}

}  // namespace headrace

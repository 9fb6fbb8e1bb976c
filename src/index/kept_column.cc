// SPDX-License-Identifier: Apache-2.0
#include "index/kept_column.h"

#include <cstring>

#include "base/crc32c.h"
#include "index/sidecar.h"
#include "storage/open_store.h"
#include "storage/sink.h"

namespace headrace {
namespace {

constexpr std::string_view kMagic = "hrcolumn";
constexpr uint32_t kVersion = 1;
constexpr size_t kHead = 40;
constexpr size_t kStatTogether = 65536;

template <typename T>
void put(std::vector<std::byte>& out, T value) {
  out.resize(out.size() + sizeof(T));
  store_le(MutableBytes(out).last(sizeof(T)), value);
}

template <typename T>
void put_all(std::vector<std::byte>& out, const std::vector<T>& values) {
  for (const T v : values) put(out, v);
}

// Takes rows off the front of what is left; `ok` is false once it was too short.
class Reader {
 public:
  explicit Reader(Bytes bytes) : rest_(bytes) {}

  template <typename T>
  std::vector<T> take(uint64_t rows) {
    if (rows > rest_.size() / sizeof(T)) {
      ok = false;
      return {};
    }
    std::vector<T> out(rows);
    for (uint64_t i = 0; i < rows; ++i) out[i] = load_le<T>(rest_.subspan(i * sizeof(T)));
    rest_ = rest_.subspan(rows * sizeof(T));
    return out;
  }
  std::vector<std::string> texts(uint64_t rows) {
    const std::vector<uint64_t> ends = take<uint64_t>(rows);
    std::vector<std::string> out;
    uint64_t begin = 0;
    for (const uint64_t end : ends) {
      if (end < begin || end > rest_.size()) {
        ok = false;
        return {};
      }
      out.emplace_back(as_text(rest_.subspan(begin, end - begin)));
      begin = end;
    }
    rest_ = rest_.subspan(begin);
    return out;
  }
  bool at_end() const { return ok && rest_.empty(); }

  bool ok = true;

 private:
  Bytes rest_;
};

}  // namespace

Result<Hash128> column_stamp(const IndexedSource& source, const std::string& column) {
  const ShardTable& shards = source.shards();
  Hasher hasher;
  hasher.add("column").add(column).add(source.fingerprint().high).add(source.fingerprint().low);
  const uint64_t files = shards.first_file(shards.size());
  std::vector<std::string> paths;
  for (uint64_t f = 0; f < files; ++f) {
    paths.push_back(source.file_path(static_cast<uint32_t>(f)));
    if (paths.size() < kStatTogether && f + 1 < files) continue;
    for (const Result<FileInfo>& info : source.store().stat_all(paths)) {
      if (!info.ok()) return info.status();
      hasher.add(info.value().bytes).add(static_cast<uint64_t>(info.value().modified_ns));
      hasher.add(info.value().version);
    }
    paths.clear();
  }
  return hasher.finish();
}

std::string kept_column_path(const IndexedSource& source, const std::string& column) {
  const ShardTable& shards = source.shards();
  Hasher name;
  name.add(column);
  for (size_t s = 0; s < shards.size(); ++s) name.add(shards.place(s)).add(shards.name(s));
  std::string place(shards.size() > 0 ? shards.place(0) : "");
  while (place.size() > 1 && place.ends_with('/')) place.pop_back();
  // Ends as sidecars do: whoever lists data passes it over.
  return place + "." + name.finish().hex().substr(0, 12) + ".column" + std::string(kSidecarSuffix);
}

Status write_column(const std::string& path, const Hash128& stamp, const FieldColumn& column) {
  std::vector<std::byte> out;
  const Bytes magic = as_bytes(kMagic);
  out.insert(out.end(), magic.begin(), magic.end());
  put(out, kVersion);
  put(out, static_cast<uint32_t>(column.type));
  put(out, static_cast<uint64_t>(column.present.size()));
  put(out, stamp.high);
  put(out, stamp.low);
  put_all(out, column.present);
  put_all(out, column.ints);
  put_all(out, column.floats);
  uint64_t end = 0;
  for (const std::string& text : column.texts) put(out, end += text.size());
  for (const std::string& text : column.texts) {
    const Bytes bytes = as_bytes(text);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  put(out, crc32c(out));
  return write_file(path, out);
}

Result<FieldColumn> read_column(const std::string& path, const Hash128& stamp) {
  HEADRACE_ASSIGN(const OpenedUrl at, open_store(path));
  const Result<Buffer> read = at.store->read_all(at.path);
  if (!read.ok()) return not_found(read.status().text());
  const Bytes all = read.value().bytes();
  if (all.size() < kHead + 4 || as_text(all.first(kMagic.size())) != kMagic ||
      load_le<uint32_t>(all.subspan(8)) != kVersion ||
      crc32c(all.first(all.size() - 4)) != load_le<uint32_t>(all.last(4)))
    return not_found("not a column of this version, or damaged");
  if (Hash128{load_le<uint64_t>(all.subspan(24)), load_le<uint64_t>(all.subspan(32))} != stamp)
    return not_found("of other data");
  const uint32_t type = load_le<uint32_t>(all.subspan(12));
  if (type > static_cast<uint32_t>(ColumnType::kText)) return not_found("of no known type");
  const uint64_t rows = load_le<uint64_t>(all.subspan(16));
  Reader reader(all.first(all.size() - 4).subspan(kHead));
  FieldColumn out{.type = static_cast<ColumnType>(type), .present = reader.take<uint8_t>(rows)};
  if (out.type == ColumnType::kInt) out.ints = reader.take<int64_t>(rows);
  if (out.type == ColumnType::kFloat) out.floats = reader.take<double>(rows);
  if (out.type == ColumnType::kText) out.texts = reader.texts(rows);
  if (!reader.at_end()) return not_found("damaged");
  return out;
}

}  // namespace headrace

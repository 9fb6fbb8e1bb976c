// SPDX-License-Identifier: Apache-2.0
#include "pack/shard_writer.h"

#include <algorithm>

#include "base/crc32c.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// Passes bytes on, and keeps their count and checksum.  One thread at a time.
class CheckedSink final : public Sink {
 public:
  CheckedSink(std::unique_ptr<Sink> inner, PackedFile& file, bool& rewritten)
      : inner_(std::move(inner)), file_(file), rewritten_(rewritten) {}
  Status append(Bytes data) override {
    file_.crc32c = crc32c(data, file_.crc32c);
    file_.bytes += data.size();
    return inner_->append(data);
  }
  Status rewrite(uint64_t offset, Bytes data) override {
    rewritten_ = true;
    return inner_->rewrite(offset, data);
  }
  Status close() override { return inner_->close(); }

 private:
  std::unique_ptr<Sink> inner_;
  PackedFile& file_;
  bool& rewritten_;
};

}  // namespace

Result<uint32_t> checksum_of(const Store& store, const std::string& path) {
  constexpr uint64_t kStretch = uint64_t{4} << 20;
  HEADRACE_ASSIGN(const FileInfo info, store.stat(path));
  Buffer bytes;
  uint32_t crc = 0;
  for (uint64_t at = 0; at < info.bytes; at += kStretch) {
    HEADRACE_TRY(store.read_at(path, at, std::min(kStretch, info.bytes - at), bytes));
    crc = crc32c(bytes.bytes(), crc);
  }
  return crc;
}

Result<std::unique_ptr<ShardWriter>> ShardWriter::open(const Format& format,
                                                       const std::string& folder,
                                                       const std::string& name, uint64_t samples,
                                                       const Schema& schema) {
  std::unique_ptr<ShardWriter> self(new ShardWriter(folder, schema));
  self->shard_.file.name = name;
  self->shard_.samples = samples;
  ShardOutput out{.schema = schema, .samples = samples};
  HEADRACE_ASSIGN(std::unique_ptr<Sink> sink, file_sink(join_path(folder, name)));
  out.file = std::make_unique<CheckedSink>(std::move(sink), self->shard_.file, self->rewritten_);
  if (!format.companion.empty()) {
    PackedFile& companion = self->shard_.companion.emplace();
    companion.name = companion_path(format, name);
    HEADRACE_ASSIGN(std::unique_ptr<Sink> second, file_sink(join_path(folder, companion.name)));
    out.companion =
        std::make_unique<CheckedSink>(std::move(second), companion, self->companion_rewritten_);
  }
  HEADRACE_ASSIGN(self->writer_, format.create(std::move(out)));
  return self;
}

Status ShardWriter::append(const HeldRecord& record) {
  values_.clear();
  for (const HeldRecord::Value& v : record.values) {
    const Field& field = schema_[v.field];
    values_.push_back(
        {field.name, field.kind, field.storage, Bytes(record.bytes).subspan(v.begin, v.length)});
  }
  return writer_->append({record.key, values_});
}

Result<PackedShard> ShardWriter::finish() {
  HEADRACE_TRY(writer_->finish());
  HEADRACE_ASSIGN(const std::shared_ptr<const Store> store, store_of_all({&folder_, 1}));
  if (rewritten_) {
    HEADRACE_ASSIGN(shard_.file.crc32c, checksum_of(*store, join_path(folder_, shard_.file.name)));
  }
  if (companion_rewritten_) {
    HEADRACE_ASSIGN(shard_.companion->crc32c,
                    checksum_of(*store, join_path(folder_, shard_.companion->name)));
  }
  return shard_;
}

}  // namespace headrace

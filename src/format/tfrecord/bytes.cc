// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/bytes.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/records.h"
#include "format/tfrecord/frame.h"

namespace headrace {
namespace {

// Writes the arrays of one record after the other.
class ArrayWriter {
 public:
  explicit ArrayWriter(MutableBytes out) : out_(out) {}

  Status add_record(Bytes record) {
    if (!parse_example(record, features_)) return {};
    for (const Feature& feature : features_) {
      const uint64_t size = array_bytes(feature);
      if (size == 0) continue;
      HEADRACE_TRY(open_number_list(feature.type, feature.list, array_));
      if (array_.size() != size || size > out_.size()) return not_as_indexed("file");
      std::ranges::copy(array_.bytes(), out_.begin());
      out_ = out_.subspan(size);
    }
    return {};
  }
  bool full() const { return out_.empty(); }

 private:
  MutableBytes out_;
  std::vector<Feature> features_;
  Buffer array_;
};

Status add_arrays(Bytes records, MutableBytes out) {
  ArrayWriter arrays(out);
  while (!records.empty()) {
    if (records.size() < kTfrecordHead + kTfrecordTail) return not_as_indexed("file");
    const auto length = load_le<uint64_t>(records);
    if (length > records.size() - kTfrecordHead - kTfrecordTail) return not_as_indexed("file");
    HEADRACE_TRY(arrays.add_record(records.subspan(kTfrecordHead, length)));
    records = records.subspan(kTfrecordHead + length + kTfrecordTail);
  }
  return arrays.full() ? Status() : not_as_indexed("file");
}

}  // namespace

Result<std::unique_ptr<FileBytes>> open_record_bytes(const ShardInput& shard) {
  Buffer head;
  const uint64_t n = std::min(kTfrecordHead, shard.info.bytes);
  if (n > 0) HEADRACE_TRY(shard.store.read_at(shard.info.path, 0, n, head));
  // A length whose checksum is right is no stream, whatever it looks like.
  const Bytes b = head.bytes();
  const bool plain =
      n == kTfrecordHead && masked_crc32c(b.first(8)) == load_le<uint32_t>(b.subspan(8));
  return open_file_bytes(shard, plain || !is_packed(b) ? Compression::kNone : compression_of(b));
}

bool is_packed(Bytes head) {
  const Compression compression = compression_of(head);
  return compression == Compression::kGzip || compression == Compression::kZlib;
}

uint64_t array_bytes(const Feature& feature) {
  Bytes run;
  if (feature.type == FeatureType::kInt64) return feature.count * 8;
  if (feature.type != FeatureType::kFloat || float_run(feature, run)) return 0;
  return feature.count * 4;
}

Status open_packed_records(Bytes stored, bool with_arrays, MutableBytes decoded) {
  if (!with_arrays) return unpack_whole(stored, decoded);
  MutableBytes rest = decoded;
  HEADRACE_TRY(unpack_into(stored, rest));
  return add_arrays(Bytes(decoded).first(decoded.size() - rest.size()), rest);
}

}  // namespace headrace

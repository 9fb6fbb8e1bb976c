// SPDX-License-Identifier: Apache-2.0
//
// PartBuilder: how a format hands over the samples of one shard, in order.
//
//   PartBuilder part({.format = "tar", .align = 512, .gap = 512});
//   part.add_extent(part.field("jpg"), {.offset = 1024, .stored = 9000});
//   part.end_sample("000/cat");
//   ... part.finish()  ──►  Part
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "index/part.h"
#include "index/varint.h"
#include "storage/lru.h"

namespace headrace {

// One thread at a time.
class PartBuilder {
 public:
  // `head` gives how values are packed (alignment, file table, openings: fixed from here
  // on) and what is known already; the rest of head() may be filled in until finish().
  explicit PartBuilder(PartHead head) : head_(std::move(head)) {}

  PartHead& head() { return head_; }
  // The number of the field, a new one if need be.  kind_of_extension() tells the kind of
  // a field whose kind is not given.
  uint32_t field(std::string_view name);
  uint32_t field(std::string_view name, Kind kind, Storage storage);
  uint32_t field(const Field& field);  // with a type and a shape
  // A path for the file table, relative to the root; its number.
  uint32_t add_file(std::string_view path);

  // Values of the sample at hand.  Several of one field keep their order, and make it `many`.
  void add_extent(uint32_t field, const PartValue& value);
  void add_whole_file(uint32_t field, uint32_t file);
  void add_int(uint32_t field, int64_t value);
  void add_float(uint32_t field, double value);
  void add_bytes(uint32_t field, Bytes value);
  // The next samples share units that open as a whole: no block ends among them.  `bytes` is
  // what all of them take when open, whatever is said of each.
  void begin_shared(uint64_t samples, uint64_t bytes);
  // Ends the sample at hand.  Where files are whole the key is that of the path and `key` unused,
  // unless the head says that keys are its own.
  void end_sample(std::string_view key = {});

  uint64_t samples() const { return head_.samples; }
  // Packs what is left.  The builder is empty after it.
  Result<PartPointer> finish();

 private:
  struct Pending {
    uint32_t field = 0;
    PartValue value = {};
    int64_t number = 0;     // of an inline int
    ByteVector bytes = {};  // of an inline float or text
    size_t place = 0;       // among the sample's values, as they came
  };
  void put_shape(ByteVector& out, uint32_t shape, const std::vector<uint32_t>& counts) const;
  void put_value(const Pending& pending);
  void put_range(const PartValue& value);
  uint32_t shape_of_sample();
  void count_into_block(uint64_t bytes);
  void end_group();
  void end_path_group();

  PartHead head_;
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> fields_;
  bool too_many_fields_ = false;
  std::string two_kinds_;  // a field that was asked for as two kinds
  std::vector<Pending> sample_;
  uint64_t shared_left_ = 0;  // samples of begin_shared() still to come

  // The group at hand.
  struct Row {
    uint32_t shape = 0;  // 1 + number in head_.shapes, or 0 with its counts
    std::vector<uint32_t> counts = {};
    ByteVector values = {};
  };
  std::vector<Row> rows_;
  ByteVector keys_;
  std::string last_key_;
  uint64_t end_ = 0;
  uint64_t next_file_ = 0;
  std::vector<int64_t> last_int_;

  // What is packed.
  struct Entry {
    uint64_t offset;
    uint32_t crc;
  };
  ByteVector groups_, paths_, path_group_;
  std::vector<Entry> directory_, path_directory_;
  std::string last_path_;
  Hasher names_;
};

}  // namespace headrace

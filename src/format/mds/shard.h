// SPDX-License-Identifier: Apache-2.0
//
// One shard of MosaicML Streaming (MDS, version 2):
//
//   0       4                     4(n+2)   offset[0]                          offset[n]
//   +-------+---------------------+--------+-----------------+- - -+----------+
//   | u32 n | u32 offset of each  | config | sample          |     | sample   |
//   |       | sample, and the end | JSON   | (columns.h)     |     |          |
//   +-------+---------------------+--------+-----------------+- - -+----------+
//
// Little-endian.  The config names the columns and says how each is encoded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "format/columns.h"
#include "format/format.h"

namespace headrace {

inline constexpr std::string_view kMdsKey = "__key__";  // our column of keys
inline constexpr uint64_t kMdsVersion = 2;

// A column as the config has it: "label", "int32".
struct MdsColumn {
  std::string name;
  std::string encoding;
};

// How a column is read.  Unknown encodings and pickles are kUnsupported by name.
Result<StoredColumn> read_mds_column(const MdsColumn& column);

// The members of the config that name the columns, as they stand there and in index.json,
// without braces.  The same bytes every time.
std::string mds_config(std::span<const MdsColumn> columns);
Result<std::vector<MdsColumn>> parse_mds_config(std::string_view text);

// One thread at a time.
class MdsShard {
 public:
  // `bytes`: of all of the shard, opened; `read` reads there.
  static Result<MdsShard> open(uint64_t bytes, ReadBytes read);

  uint64_t samples() const { return offsets_.size() - 1; }
  const std::vector<StoredColumn>& columns() const { return columns_; }
  Extent sample(uint64_t s) const { return {offsets_[s], offsets_[s + 1] - offsets_[s]}; }
  const ReadBytes& read() const { return read_; }
  Status locate(uint64_t s, std::vector<Extent>& out) const {
    return locate_columns(columns_, sample(s), read_, out);
  }

 private:
  ReadBytes read_;
  std::vector<uint64_t> offsets_;
  std::vector<StoredColumn> columns_;
};

// Whether these first bytes can be a shard.
bool looks_like_mds(Bytes head);

Result<std::unique_ptr<Writer>> make_mds_writer(ShardOutput out);
Status mds_can_hold(const Schema& schema);

}  // namespace headrace

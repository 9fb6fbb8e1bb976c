// SPDX-License-Identifier: Apache-2.0
//
// JsonTexts: one member of every line of a file of JSON lines, as the file streams by.  For corpora
// that are read once and are too large for an index: nothing is kept, and a line that cannot be
// read is told beside the texts, so that whoever reads decides.
//
//   bytes of the file   0        begin                       end                 size
//                       | … line |lin e | line | … | line | li|ne | line …       |
//   lines of the range            ^ the first that begins here … the last that begins before `end`
//
// A packed file (x.gz, x.zst) is read from its beginning to its end, with memory for two pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/inflater.h"
#include "base/status.h"
#include "storage/block_stream.h"
#include "storage/store.h"

namespace headrace {

struct BadLine {
  uint64_t line = 0;   // from 1, of the range
  uint64_t after = 0;  // texts of the range that come before it
  std::string cause;
};

struct JsonTextBatch {
  std::string bytes;         // the texts, one after the other
  std::vector<size_t> ends;  // of each text in `bytes`
  std::vector<BadLine> bad;
};

// One thread at a time.
class JsonTexts {
 public:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = kWholeFile;
  };

  // `member` is a name, or dotted names of objects in objects.
  static Result<std::unique_ptr<JsonTexts>> open(std::shared_ptr<const Store> store,
                                                 const FileInfo& file, Range range,
                                                 std::string member);

  // Texts of `bytes` or a little more; fewer where the range ends.
  Status next(uint64_t bytes, JsonTextBatch& out);
  // The first line that is not blank; empty where there is none.  Before next().
  Status first_line(std::string_view& out);
  bool at_end() const { return ended_; }
  // Of the stored file, from the begin of the range on; of a packed one about so many.
  uint64_t used_bytes() const;

 private:
  JsonTexts(std::shared_ptr<const Store> store, const FileInfo& file, Range range,
            std::string member, std::unique_ptr<Inflater> inflater);
  Status line(std::string_view& out);  // at_end() where there is none
  Status more();
  Status read();
  Status inflate();
  void add(std::string_view text, JsonTextBatch& out);
  Status text_of(std::string_view line, std::string& out) const;

  const std::shared_ptr<const Store> store_;
  const std::string path_;
  const uint64_t size_;
  const Range range_;
  const std::string member_;
  const std::unique_ptr<Inflater> inflater_;  // null: not packed
  BlockStream stream_;
  uint64_t read_;            // of the stored file
  Bytes piece_ = {};         // the last that was read; of a packed file, what is still packed
  std::string held_;         // text that was read
  size_t front_ = 0;         // what of it is used
  uint64_t held_at_;         // where held_ begins in the text
  bool first_ = true;        // no line was looked at
  bool source_end_ = false;  // nothing more comes
  bool ended_ = false;
  uint64_t lines_ = 0, texts_ = 0;
};

// Line ends before byte `end` of a file that is not packed.
Result<uint64_t> count_line_ends(const Store& store, const FileInfo& file, uint64_t end);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// BlockStream: a file of a server, read from its beginning to its end with several ranges under
// way at a time.  For formats whose headers lie between the data: only the last header says where
// the next one is, and a round trip for each would take for ever.
//
//   BlockStream stream(store, path, size, {.ahead = 8});
//   stream.bytes(0, 512, header);            // then further on, in order
//
//   file   [ used | at hand | under way | under way | … ]
//                 ^ offset asked for
//
// Who jumps far ahead, over a large member, gets single small reads until the steps are short
// again.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "base/buffer.h"
#include "base/mutex.h"
#include "storage/kept_blocks.h"
#include "storage/store.h"

namespace headrace {

struct BlockStreamOptions {
  unsigned ahead = 8;                // blocks under way besides the one that is looked at
  const KeptBlocks* kept = nullptr;  // gets the blocks that were looked at; may be null
};

// One thread at a time.
class BlockStream {
 public:
  static constexpr uint64_t kBlockBytes = uint64_t{4} << 20;

  BlockStream(const Store& store, std::string path, uint64_t size, BlockStreamOptions options)
      : store_(store), path_(std::move(path)), size_(size), options_(options) {}
  ~BlockStream() { give_up(); }
  BlockStream(const BlockStream&) = delete;
  BlockStream& operator=(const BlockStream&) = delete;

  // Precondition: offset + length is within the file.  Valid until the next call.
  Status bytes(uint64_t offset, uint64_t length, Bytes& out);

 private:
  struct Block {
    uint64_t offset = 0;
    uint64_t length = 0;
    Mutex mu;
    CondVar is_done;
    bool done HEADRACE_GUARDED_BY(mu) = false;
    Status status HEADRACE_GUARDED_BY(mu);
    std::string version HEADRACE_GUARDED_BY(mu);
    std::shared_ptr<Buffer> memory = std::make_shared<Buffer>();

    uint64_t end() const { return offset + length; }
  };

  void move_to(uint64_t offset);
  void read_ahead(uint64_t until);
  void start(uint64_t length);
  void drop_first();
  void give_up();
  Status wait(Block& block) const;

  const Store& store_;
  const std::string path_;
  const uint64_t size_;
  const BlockStreamOptions options_;
  std::shared_ptr<ReadGroup> group_ = std::make_shared<ReadGroup>();
  std::deque<std::shared_ptr<Block>> blocks_;  // side by side
  uint64_t end_ = 0;                           // of the last one
  unsigned depth_ = options_.ahead;            // blocks ahead, by now
  bool small_ = false;                         // after a jump
  Buffer joined_;                              // what lies in several
};

}  // namespace headrace

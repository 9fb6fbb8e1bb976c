// SPDX-License-Identifier: Apache-2.0
//
// What the opcodes of a pickle work on: a stack of node numbers with marks, and a memo.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/pickle/unpickle.h"

namespace headrace {

// One thread at a time.  Every operation takes constant memory or moves what is there.
class PickleStack {
 public:
  using Type = PickleNode::Type;

  explicit PickleStack(uint64_t pickle_bytes) : pickle_bytes_(pickle_bytes) {}

  Status push(PickleNode node);
  Status push_int(int64_t v, Type type = Type::kInt) { return push({.type = type, .integer = v}); }
  Status push_text(Bytes bytes, Type type) { return push({.type = type, .text = as_text(bytes)}); }
  Status push_container(Type type, std::vector<uint32_t> items);
  Status pop(uint32_t& out);
  Status duplicate();

  Status mark();
  Status drop_to_mark() { return pop_mark(marked_); }
  // What lies above the mark, or the `n` on top, becomes a container.
  Status collect(Type type);
  Status tuple(size_t n);
  // … or is added to the container below it.
  Status extend_marked(Type type);
  Status extend_top(size_t n, Type type);

  Status remember(uint64_t number);
  Status remember_next() { return remember(memo_.size()); }
  Status recall(uint64_t number);

  // What was made so far.
  Pickle& made() { return out_; }
  // Texts that became bytes, and those: no text is decoded twice.
  std::unordered_map<uint32_t, uint32_t>& encoded() { return encoded_; }
  // The top without taking it.
  Status top(uint32_t& out) const;
  Status push_node(uint32_t node);

  // For messages; "" where there is no text.
  std::string_view text_below_top(size_t depth) const;
  // The top is the root of all that was made.
  Result<Pickle> finish();

 private:
  static constexpr uint32_t kNothing = ~uint32_t{0};

  // The lowest stack place that may be taken: what lies below a mark is another's.
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Status pop_mark(std::vector<uint32_t>& out);
  Status pop_top(size_t n, std::vector<uint32_t>& out);
  Status extend(Type type);

  const uint64_t pickle_bytes_;
  Pickle out_;
  std::vector<uint32_t> stack_, memo_, marked_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, uint32_t> encoded_;
};

}  // namespace headrace

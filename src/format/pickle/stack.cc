// SPDX-License-Identifier: Apache-2.0
#include "format/pickle/stack.h"

namespace headrace {

Status PickleStack::push_node(uint32_t node) {
  stack_.push_back(node);
  return {};
}

Status PickleStack::push(PickleNode node) {
  out_.nodes.push_back(node);
  return push_node(static_cast<uint32_t>(out_.nodes.size() - 1));
}

Status PickleStack::push_container(Type type, std::vector<uint32_t> items) {
  if (type == Type::kDict && items.size() % 2 != 0)
    return corrupt("a dict of the pickle has a key without a value");
  out_.items.push_back(std::move(items));
  return push({.type = type, .items = static_cast<uint32_t>(out_.items.size() - 1)});
}

Status PickleStack::top(uint32_t& out) const {
  if (stack_.size() <= floor()) return corrupt("the pickle takes from an empty stack");
  out = stack_.back();
  return {};
}

Status PickleStack::pop(uint32_t& out) {
  HEADRACE_TRY(top(out));
  stack_.pop_back();
  return {};
}

Status PickleStack::duplicate() {
  uint32_t node = 0;
  HEADRACE_TRY(top(node));
  return push_node(node);
}

Status PickleStack::mark() {
  marks_.push_back(stack_.size());
  return {};
}

Status PickleStack::pop_mark(std::vector<uint32_t>& out) {
  if (marks_.empty()) return corrupt("the pickle has no mark where one is wanted");
  const size_t n = stack_.size() - marks_.back();
  HEADRACE_TRY(pop_top(n, out));
  marks_.pop_back();
  return {};
}

Status PickleStack::pop_top(size_t n, std::vector<uint32_t>& out) {
  if (stack_.size() < floor() + n) return corrupt("the pickle takes from an empty stack");
  const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(n);
  out.assign(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  return {};
}

Status PickleStack::collect(Type type) {
  HEADRACE_TRY(pop_mark(marked_));
  return push_container(type, marked_);
}

Status PickleStack::tuple(size_t n) {
  HEADRACE_TRY(pop_top(n, marked_));
  return push_container(Type::kTuple, marked_);
}

Status PickleStack::extend_marked(Type type) {
  HEADRACE_TRY(pop_mark(marked_));
  return extend(type);
}

Status PickleStack::extend_top(size_t n, Type type) {
  HEADRACE_TRY(pop_top(n, marked_));
  return extend(type);
}

// Appends marked_ to the container on top.
Status PickleStack::extend(Type type) {
  uint32_t node = 0;
  HEADRACE_TRY(top(node));
  if (out_.nodes[node].type != type)
    return corrupt("the pickle adds to something that is no such container");
  if (type == Type::kDict && marked_.size() % 2 != 0)
    return corrupt("a dict of the pickle has a key without a value");
  std::vector<uint32_t>& items = out_.items[out_.nodes[node].items];
  items.insert(items.end(), marked_.begin(), marked_.end());
  return {};
}

// Picklers number the memo consecutively, so that no number exceeds the bytes there are.
Status PickleStack::remember(uint64_t number) {
  if (number >= pickle_bytes_) return corrupt("a memo number of the pickle is out of range");
  uint32_t node = 0;
  HEADRACE_TRY(top(node));
  if (number >= memo_.size()) memo_.resize(number + 1, kNothing);
  memo_[number] = node;
  return {};
}

Status PickleStack::recall(uint64_t number) {
  if (number >= memo_.size() || memo_[number] == kNothing)
    return corrupt("the pickle recalls what it never remembered");
  return push_node(memo_[number]);
}

std::string_view PickleStack::text_below_top(size_t depth) const {
  if (depth >= stack_.size()) return {};
  return out_.nodes[stack_[stack_.size() - 1 - depth]].text;
}

Result<Pickle> PickleStack::finish() {
  HEADRACE_TRY(pop(out_.root));
  return std::move(out_);
}

}  // namespace headrace

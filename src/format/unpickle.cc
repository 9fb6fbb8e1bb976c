// SPDX-License-Identifier: Apache-2.0
//
// The pickle machine: opcodes of one byte work on a stack, a memo and marks
// (CPython's pickletools.py is the reference).

#include "format/unpickle.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "index/varint.h"

namespace headrace {
namespace {

using Type = PickleNode::Type;

struct Refused {
  unsigned char code;
  std::string_view name;
};

constexpr Refused kRefused[] = {
    {'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},
    {'b', "BUILD"},     {'i', "INST"},          {'o', "OBJ"},
    {0x81, "NEWOBJ"},   {0x92, "NEWOBJ_EX"},    {0x82, "EXT1"},
    {0x83, "EXT2"},     {0x84, "EXT4"},         {'P', "PERSID"},
    {'Q', "BINPERSID"}, {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"},
};

// One thread at a time.
class Unpickler {
 public:
  explicit Unpickler(Bytes bytes) : all_(bytes), in_(bytes) {}

  Result<Pickle> run() {
    for (;;) {
      if (in_.left() == 0) return corrupt("the pickle ends before its STOP").at(position());
      const auto code = in_.le<uint8_t>();
      if (code == '.') break;
      const uint64_t at = position() - 1;
      if (Status s = step(code); !s.ok()) return s.at(at);
      if (!in_.ok()) return corrupt("the pickle is cut short").at(at);
    }
    uint32_t root = 0;
    HEADRACE_TRY(pop(root));
    out_.root = root;
    return std::move(out_);
  }

 private:
  Status step(uint8_t code) {
    for (const Refused& refused : kRefused)
      if (refused.code == code) return refuse(refused);
    bool known = true;
    Status status = scalar(code, known);
    if (!known) status = text(code, known = true);
    if (!known) status = container(code, known = true);
    if (!known) status = memo(code, known = true);
    if (!known) return corrupt(fmt::format("unknown pickle opcode 0x{:02x}", code));
    return status;
  }

  // clang-format off: one opcode a line
  Status scalar(uint8_t code, bool& known) {
    switch (code) {
      case 0x80: in_.take(1); return {};   // PROTO
      case 0x95: in_.take(8); return {};   // FRAME: its length is of no use here
      case 'N': return push({.type = Type::kNone});
      case 0x88: return push_int(1, Type::kBool);
      case 0x89: return push_int(0, Type::kBool);
      case 'J': return push_int(in_.le<int32_t>());
      case 'K': return push_int(in_.le<uint8_t>());
      case 'M': return push_int(in_.le<uint16_t>());
      case 0x8a: return push_long(in_.take(in_.le<uint8_t>()));
      case 0x8b: return push_long(in_.take(in_.le<uint32_t>()));
      case 'I': return push_decimal(line(), true);
      case 'L': return push_decimal(line(), false);
      case 'F': return push_float_text(line());
      case 'G': return push({.type = Type::kFloat, .number = big_endian_double()});
      default: known = false; return {};
    }
  }

  Status text(uint8_t code, bool& known) {
    switch (code) {
      case 'X': return push_text(in_.take(in_.le<uint32_t>()), Type::kText);
      case 0x8c: return push_text(in_.take(in_.le<uint8_t>()), Type::kText);
      case 0x8d: return push_text(in_.take(in_.le<uint64_t>()), Type::kText);
      case 'T': return push_text(in_.take(in_.le<uint32_t>()), Type::kText);  // Python 2's str
      case 'U': return push_text(in_.take(in_.le<uint8_t>()), Type::kText);
      case 'B': return push_text(in_.take(in_.le<uint32_t>()), Type::kBytes);
      case 'C': return push_text(in_.take(in_.le<uint8_t>()), Type::kBytes);
      case 0x8e: return push_text(in_.take(in_.le<uint64_t>()), Type::kBytes);
      case 0x96: return push_text(in_.take(in_.le<uint64_t>()), Type::kBytes);
      case 'V': return push_escaped(line(), false);
      case 'S': return push_escaped(line(), true);
      default: known = false; return {};
    }
  }

  Status container(uint8_t code, bool& known) {
    switch (code) {
      case '(': marks_.push_back(stack_.size()); return {};
      case ']': return push_container(Type::kList, {});
      case ')': return push_container(Type::kTuple, {});
      case '}': return push_container(Type::kDict, {});
      case 0x8f: return push_container(Type::kSet, {});
      case 'l': return collect(Type::kList);
      case 't': return collect(Type::kTuple);
      case 'd': return collect(Type::kDict);
      case 0x91: return collect(Type::kSet);
      case 0x85: return tuple(1);
      case 0x86: return tuple(2);
      case 0x87: return tuple(3);
      case 'a': return extend_top(1, Type::kList);
      case 's': return extend_top(2, Type::kDict);
      case 'e': return extend_marked(Type::kList);
      case 'u': return extend_marked(Type::kDict);
      case 0x90: return extend_marked(Type::kSet);
      default: known = false; return {};
    }
  }

  Status memo(uint8_t code, bool& known) {
    uint32_t node = 0;
    switch (code) {
      case '0': return pop(node);
      case '1': return pop_mark(marked_);
      case '2':
        HEADRACE_TRY(top(node));
        return push_node(node);
      case 'g': return recall(decimal(line()));
      case 'h': return recall(in_.le<uint8_t>());
      case 'j': return recall(in_.le<uint32_t>());
      case 'p': return remember(decimal(line()));
      case 'q': return remember(in_.le<uint8_t>());
      case 'r': return remember(in_.le<uint32_t>());
      case 0x94: return remember(memo_.size());
      default: known = false; return {};
    }
  }

  // clang-format on

  // Says which class was wanted, where the opcode tells.
  Status refuse(const Refused& opcode) {
    std::string wanted;
    if (opcode.code == 'c' || opcode.code == 'i') {
      const std::string_view module = line();
      wanted = fmt::format(" for {}.{}", module, line());
    } else if (opcode.code == 0x93 && stack_.size() >= 2) {
      wanted = fmt::format(" for {}.{}", out_.nodes[stack_[stack_.size() - 2]].text,
                           out_.nodes[stack_.back()].text);
    }
    return corrupt(
        fmt::format("the pickle wants code: opcode {}{}; only plain containers and scalars are "
                    "read, nothing was executed",
                    opcode.name, wanted));
  }

  uint64_t position() const { return all_.size() - in_.left(); }

  std::string_view line() {
    const std::string_view rest = as_text(all_.subspan(position()));
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return in_.fail(), std::string_view();
    return as_text(in_.take(end + 1)).substr(0, end);
  }

  uint64_t decimal(std::string_view digits) {
    uint64_t v = 0;
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (r.ec != std::errc() || r.ptr != digits.data() + digits.size()) in_.fail();
    return v;
  }

  double big_endian_double() {
    return std::bit_cast<double>(__builtin_bswap64(in_.le<uint64_t>()));
  }

  Status push_node(uint32_t node) {
    stack_.push_back(node);
    return {};
  }
  Status push(PickleNode node) {
    out_.nodes.push_back(node);
    return push_node(static_cast<uint32_t>(out_.nodes.size() - 1));
  }
  Status push_int(int64_t v, Type type = Type::kInt) { return push({.type = type, .integer = v}); }
  Status push_text(Bytes bytes, Type type) { return push({.type = type, .text = as_text(bytes)}); }

  // Little-endian two's complement of any length.
  Status push_long(Bytes bytes) {
    if (bytes.size() > 8) return push({.type = Type::kBigInt});
    uint64_t v = !bytes.empty() && bytes.back() >= std::byte{0x80} ? ~uint64_t{0} : 0;
    for (size_t i = bytes.size(); i > 0; --i) v = v << 8 | static_cast<uint64_t>(bytes[i - 1]);
    return push_int(static_cast<int64_t>(v));
  }

  Status push_decimal(std::string_view digits, bool may_be_bool) {
    if (may_be_bool && (digits == "00" || digits == "01"))
      return push_int(digits == "01", Type::kBool);
    if (digits.ends_with('L')) digits.remove_suffix(1);
    int64_t v = 0;
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (r.ptr != digits.data() + digits.size())
      return corrupt("an integer of the pickle does not parse");
    if (r.ec == std::errc::result_out_of_range) return push({.type = Type::kBigInt});
    return r.ec == std::errc() ? push_int(v) : corrupt("an integer of the pickle does not parse");
  }

  Status push_float_text(std::string_view digits) {
    double v = 0;
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (r.ec != std::errc() || r.ptr != digits.data() + digits.size())
      return corrupt("a float of the pickle does not parse");
    return push({.type = Type::kFloat, .number = v});
  }

  // Protocol 0: UNICODE escapes \uXXXX and \\ only (raw-unicode-escape); STRING is a quoted repr.
  Status push_escaped(std::string_view escaped, bool quoted) {
    if (quoted) {
      if (escaped.size() < 2 || escaped.front() != escaped.back() ||
          (escaped.front() != '\'' && escaped.front() != '"'))
        return corrupt("a string of the pickle is not quoted");
      escaped = escaped.substr(1, escaped.size() - 2);
    }
    if (escaped.find('\\') != std::string_view::npos || !is_ascii(escaped))
      return corrupt(
          "a text pickle with escapes or other letters than ASCII; write it with protocol 2 or "
          "above");
    return push_text(as_bytes(escaped), Type::kText);
  }

  static bool is_ascii(std::string_view text) {
    for (const char c : text)
      if (static_cast<unsigned char>(c) >= 0x80) return false;
    return true;
  }

  // The lowest stack place that may be taken: what lies below a mark is another's.
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Status top(uint32_t& out) const {
    if (stack_.size() <= floor()) return corrupt("the pickle takes from an empty stack");
    out = stack_.back();
    return {};
  }
  Status pop(uint32_t& out) {
    HEADRACE_TRY(top(out));
    stack_.pop_back();
    return {};
  }
  Status pop_mark(std::vector<uint32_t>& out) {
    if (marks_.empty()) return corrupt("the pickle has no mark where one is wanted");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    out.assign(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return {};
  }

  Status push_container(Type type, std::vector<uint32_t> items) {
    if (type == Type::kDict && items.size() % 2 != 0)
      return corrupt("a dict of the pickle has a key without a value");
    out_.items.push_back(std::move(items));
    return push({.type = type, .items = static_cast<uint32_t>(out_.items.size() - 1)});
  }
  Status collect(Type type) {
    HEADRACE_TRY(pop_mark(marked_));
    return push_container(type, marked_);
  }
  Status tuple(size_t n) {
    if (stack_.size() < floor() + n) return corrupt("the pickle takes from an empty stack");
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(n);
    std::vector<uint32_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return push_container(Type::kTuple, std::move(items));
  }

  Status extend_top(size_t n, Type type) {
    if (stack_.size() < floor() + n) return corrupt("the pickle takes from an empty stack");
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(n);
    marked_.assign(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return extend(type);
  }
  Status extend_marked(Type type) {
    HEADRACE_TRY(pop_mark(marked_));
    return extend(type);
  }
  // Appends marked_ to the container on top.
  Status extend(Type type) {
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
  Status remember(uint64_t number) {
    if (number >= all_.size()) return corrupt("a memo number of the pickle is out of range");
    uint32_t node = 0;
    HEADRACE_TRY(top(node));
    if (number >= memo_.size()) memo_.resize(number + 1, kNothing);
    memo_[number] = node;
    return {};
  }
  Status recall(uint64_t number) {
    if (number >= memo_.size() || memo_[number] == kNothing)
      return corrupt("the pickle recalls what it never remembered");
    return push_node(memo_[number]);
  }

  static constexpr uint32_t kNothing = ~uint32_t{0};
  const Bytes all_;
  ByteReader in_;
  Pickle out_;
  std::vector<uint32_t> stack_, memo_, marked_;
  std::vector<size_t> marks_;
};

}  // namespace

Result<Pickle> unpickle(Bytes bytes) {
  if (bytes.size() > kMaxPickleBytes) return unsupported("a pickle of more than 1 GiB");
  return Unpickler(bytes).run();
}

}  // namespace headrace

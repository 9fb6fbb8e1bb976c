// SPDX-License-Identifier: Apache-2.0
//
// The pickle machine: opcodes of one byte work on a stack, a memo and marks
// (CPython's pickletools.py is the reference).

#include "format/pickle/unpickle.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "format/pickle/numpy.h"
#include "format/pickle/stack.h"
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
  Unpickler(Bytes bytes, PickleWants wants)
      : all_(bytes), in_(bytes), arrays_(wants == PickleWants::kArrays), stack_(bytes.size()) {}

  Result<Pickle> run() {
    for (;;) {
      if (in_.left() == 0) return corrupt("the pickle ends before its STOP").at(position());
      const auto code = in_.le<uint8_t>();
      if (code == '.') break;
      const uint64_t at = position() - 1;
      if (Status s = step(code); !s.ok()) return s.at(at);
      if (!in_.ok()) return corrupt("the pickle is cut short").at(at);
    }
    return stack_.finish();
  }

 private:
  Status step(uint8_t code) {
    if (arrays_ && code == 'R') return reduce_pickle(stack_);
    if (arrays_ && code == 'b') return build_pickle(stack_);
    if (arrays_ && code == 'c') return global();
    if (arrays_ && code == 0x93) return stack_global();
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
      case 'N': return stack_.push({.type = Type::kNone});
      case 0x88: return stack_.push_int(1, Type::kBool);
      case 0x89: return stack_.push_int(0, Type::kBool);
      case 'J': return stack_.push_int(in_.le<int32_t>());
      case 'K': return stack_.push_int(in_.le<uint8_t>());
      case 'M': return stack_.push_int(in_.le<uint16_t>());
      case 0x8a: return push_long(in_.take(in_.le<uint8_t>()));
      case 0x8b: return push_long(in_.take(in_.le<uint32_t>()));
      case 'I': return push_decimal(line(), true);
      case 'L': return push_decimal(line(), false);
      case 'F': return push_float_text(line());
      case 'G': return stack_.push({.type = Type::kFloat, .number = big_endian_double()});
      default: known = false; return {};
    }
  }

  Status text(uint8_t code, bool& known) {
    switch (code) {
      case 'X': return stack_.push_text(in_.take(in_.le<uint32_t>()), Type::kText);
      case 0x8c: return stack_.push_text(in_.take(in_.le<uint8_t>()), Type::kText);
      case 0x8d: return stack_.push_text(in_.take(in_.le<uint64_t>()), Type::kText);
      case 'T': return stack_.push_text(in_.take(in_.le<uint32_t>()), Type::kText);  // Python 2's str
      case 'U': return stack_.push_text(in_.take(in_.le<uint8_t>()), Type::kText);
      case 'B': return stack_.push_text(in_.take(in_.le<uint32_t>()), Type::kBytes);
      case 'C': return stack_.push_text(in_.take(in_.le<uint8_t>()), Type::kBytes);
      case 0x8e:
      case 0x96: return stack_.push_text(in_.take(in_.le<uint64_t>()), Type::kBytes);
      case 'V': return push_escaped(line(), false);
      case 'S': return push_escaped(line(), true);
      default: known = false; return {};
    }
  }

  Status container(uint8_t code, bool& known) {
    switch (code) {
      case '(': return stack_.mark();
      case ']': return stack_.push_container(Type::kList, {});
      case ')': return stack_.push_container(Type::kTuple, {});
      case '}': return stack_.push_container(Type::kDict, {});
      case 0x8f: return stack_.push_container(Type::kSet, {});
      case 'l': return stack_.collect(Type::kList);
      case 't': return stack_.collect(Type::kTuple);
      case 'd': return stack_.collect(Type::kDict);
      case 0x91: return stack_.collect(Type::kSet);
      case 0x85: return stack_.tuple(1);
      case 0x86: return stack_.tuple(2);
      case 0x87: return stack_.tuple(3);
      case 'a': return stack_.extend_top(1, Type::kList);
      case 's': return stack_.extend_top(2, Type::kDict);
      case 'e': return stack_.extend_marked(Type::kList);
      case 'u': return stack_.extend_marked(Type::kDict);
      case 0x90: return stack_.extend_marked(Type::kSet);
      default: known = false; return {};
    }
  }

  Status memo(uint8_t code, bool& known) {
    uint32_t node = 0;
    switch (code) {
      case '0': return stack_.pop(node);
      case '1': return stack_.drop_to_mark();
      case '2': return stack_.duplicate();
      case 'g': return stack_.recall(decimal(line()));
      case 'h': return stack_.recall(in_.le<uint8_t>());
      case 'j': return stack_.recall(in_.le<uint32_t>());
      case 'p': return stack_.remember(decimal(line()));
      case 'q': return stack_.remember(in_.le<uint8_t>());
      case 'r': return stack_.remember(in_.le<uint32_t>());
      case 0x94: return stack_.remember_next();
      default: known = false; return {};
    }
  }

  // clang-format on

  Status global() {
    const std::string_view module = line();
    return push_global("GLOBAL", module, line());
  }

  Status stack_global() {
    const std::string_view module = stack_.text_below_top(1);
    const std::string_view name = stack_.text_below_top(0);
    uint32_t node = 0;
    HEADRACE_TRY(stack_.pop(node));
    HEADRACE_TRY(stack_.pop(node));
    return push_global("STACK_GLOBAL", module, name);
  }

  Status push_global(std::string_view opcode, std::string_view module, std::string_view name) {
    const std::optional<PickleGlobal> known = find_pickle_global(module, name);
    if (!known)
      return corrupt(
          fmt::format("the pickle wants code: opcode {} for {}.{}; only plain "
                      "containers, scalars and NumPy's arrays are read, nothing was "
                      "executed",
                      opcode, module, name));
    return stack_.push_int(static_cast<int64_t>(*known), Type::kGlobal);
  }

  // Says which class was wanted, where the opcode tells.
  Status refuse(const Refused& opcode) {
    std::string wanted;
    if (opcode.code == 'c' || opcode.code == 'i') {
      const std::string_view module = line();
      wanted = fmt::format(" for {}.{}", module, line());
    } else if (opcode.code == 0x93) {
      wanted = fmt::format(" for {}.{}", stack_.text_below_top(1), stack_.text_below_top(0));
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

  // Little-endian two's complement of any length.
  Status push_long(Bytes bytes) {
    if (bytes.size() > 8) return stack_.push({.type = Type::kBigInt});
    uint64_t v = !bytes.empty() && bytes.back() >= std::byte{0x80} ? ~uint64_t{0} : 0;
    for (size_t i = bytes.size(); i > 0; --i) v = v << 8 | static_cast<uint64_t>(bytes[i - 1]);
    return stack_.push_int(static_cast<int64_t>(v));
  }

  Status push_decimal(std::string_view digits, bool may_be_bool) {
    if (may_be_bool && (digits == "00" || digits == "01"))
      return stack_.push_int(digits == "01", Type::kBool);
    if (digits.ends_with('L')) digits.remove_suffix(1);
    int64_t v = 0;
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (r.ptr != digits.data() + digits.size())
      return corrupt("an integer of the pickle does not parse");
    if (r.ec == std::errc::result_out_of_range) return stack_.push({.type = Type::kBigInt});
    return r.ec == std::errc() ? stack_.push_int(v)
                               : corrupt("an integer of the pickle does not parse");
  }

  Status push_float_text(std::string_view digits) {
    double v = 0;
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (r.ec != std::errc() || r.ptr != digits.data() + digits.size())
      return corrupt("a float of the pickle does not parse");
    return stack_.push({.type = Type::kFloat, .number = v});
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
    return stack_.push_text(as_bytes(escaped), Type::kText);
  }

  static bool is_ascii(std::string_view text) {
    for (const char c : text)
      if (static_cast<unsigned char>(c) >= 0x80) return false;
    return true;
  }

  const Bytes all_;
  ByteReader in_;
  const bool arrays_;
  PickleStack stack_;
};

}  // namespace

Result<Pickle> unpickle(Bytes bytes, PickleWants wants) {
  if (bytes.size() > kMaxPickleBytes) return unsupported("a pickle of more than 1 GiB");
  return Unpickler(bytes, wants).run();
}

}  // namespace headrace

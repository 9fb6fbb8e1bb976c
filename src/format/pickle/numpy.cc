// SPDX-License-Identifier: Apache-2.0
#include "format/pickle/numpy.h"

#include <fmt/format.h>

namespace headrace {
namespace {

using Type = PickleNode::Type;

bool is_bytes(const PickleNode& node) {
  return node.type == Type::kBytes || node.type == Type::kText;  // Python 2's str is a text here
}

constexpr size_t kMaxAxes = 64;      // as NumPy 2 has
constexpr size_t kMaxArguments = 8;  // no call that is known has more

// Arguments of a call, each a node.
struct Call {
  PickleGlobal global = PickleGlobal::kDType;
  std::vector<uint32_t> arguments;
};

Status not_understood(std::string_view what) {
  return corrupt(fmt::format("the pickle makes {} in a way that is not known here", what));
}

Status push_array(PickleStack& stack, uint32_t shape, uint32_t type, uint32_t bytes, bool fortran) {
  HEADRACE_TRY(stack.push_container(Type::kArray, {shape, type, bytes}));
  uint32_t array = 0;
  HEADRACE_TRY(stack.top(array));
  stack.made().nodes[array].integer = fortran ? 1 : 0;
  return {};
}

Status encode(PickleStack& stack, const Call& call) {
  Pickle& made = stack.made();
  if (call.arguments.size() != 2) return not_understood("bytes of a text");
  const PickleNode text = made.nodes[call.arguments[0]];
  const std::string_view codec = made.nodes[call.arguments[1]].text;
  if (text.type != Type::kText || (codec != "latin1" && codec != "latin-1"))
    return not_understood("bytes of a text");
  if (const auto done = stack.encoded().find(call.arguments[0]); done != stack.encoded().end())
    return stack.push_node(done->second);
  PickleNode out{.type = Type::kBytes, .text = text.text};
  std::string decoded;
  HEADRACE_TRY(decode_latin1(text.text, decoded));
  if (decoded.size() != text.text.size()) {  // else it is ASCII, and lies there as it is
    out.encoded = text.text;
    out.text = made.texts.emplace_back(std::move(decoded));
  }
  HEADRACE_TRY(stack.push(out));
  stack.encoded().emplace(call.arguments[0], static_cast<uint32_t>(made.nodes.size() - 1));
  return {};
}

Status make(PickleStack& stack, const Call& call) {
  const Pickle& made = stack.made();
  const std::vector<uint32_t>& in = call.arguments;
  switch (call.global) {
    case PickleGlobal::kReconstruct: {
      if (in.size() != 3 || made.nodes[in[0]].type != Type::kGlobal ||
          made.nodes[in[0]].integer != static_cast<int64_t>(PickleGlobal::kArrayType))
        return not_understood("an array");
      return stack.push_container(Type::kArray, {});
    }
    case PickleGlobal::kFromBuffer: {
      if (in.size() != 4) return not_understood("an array");
      const std::string_view order = made.nodes[in[3]].text;
      if (order != "C" && order != "F") return not_understood("an array");
      return push_array(stack, in[2], in[1], in[0], order == "F");
    }
    case PickleGlobal::kScalar: {
      if (in.size() != 2) return not_understood("a number of NumPy");
      const std::vector<uint32_t> arguments = in;
      HEADRACE_TRY(stack.push_container(Type::kTuple, {}));
      uint32_t shape = 0;
      HEADRACE_TRY(stack.pop(shape));
      return push_array(stack, shape, arguments[0], arguments[1], false);
    }
    case PickleGlobal::kDType: {
      if (in.empty() || !is_bytes(made.nodes[in[0]])) return not_understood("a type of NumPy");
      return stack.push({.type = Type::kDType, .text = made.nodes[in[0]].text});
    }
    case PickleGlobal::kEncode:
      return encode(stack, call);
    case PickleGlobal::kByteArray:
      if (in.empty()) return stack.push({.type = Type::kBytes});
      if (in.size() != 1 || made.nodes[in[0]].type != Type::kBytes)
        return not_understood("a bytearray");
      return stack.push_node(in[0]);
    case PickleGlobal::kOrderedDict:
      if (!in.empty()) return not_understood("an OrderedDict");
      return stack.push_container(Type::kDict, {});
    case PickleGlobal::kArrayType:
      break;
  }
  return not_understood("an array");
}

Status build_type(Pickle& made, PickleNode& type, const std::vector<uint32_t>& state) {
  if (state.size() < 4 || made.nodes[state[1]].text.size() != 1)
    return not_understood("a type of NumPy");
  if (made.nodes[state[2]].type != Type::kNone || made.nodes[state[3]].type != Type::kNone)
    return unsupported(
        "an array of a structured type, which is not read: save its fields as arrays of their own");
  type.order = made.nodes[state[1]].text[0];
  return {};
}

}  // namespace

std::optional<PickleGlobal> find_pickle_global(std::string_view module, std::string_view name) {
  struct Row {
    std::string_view module, name;
    PickleGlobal global;
  };
  static constexpr Row kKnown[] = {
      {"numpy.core.multiarray", "_reconstruct", PickleGlobal::kReconstruct},
      {"numpy._core.multiarray", "_reconstruct", PickleGlobal::kReconstruct},
      {"numpy.core.multiarray", "scalar", PickleGlobal::kScalar},
      {"numpy._core.multiarray", "scalar", PickleGlobal::kScalar},
      {"numpy.core.numeric", "_frombuffer", PickleGlobal::kFromBuffer},
      {"numpy._core.numeric", "_frombuffer", PickleGlobal::kFromBuffer},
      {"numpy", "ndarray", PickleGlobal::kArrayType},
      {"numpy", "dtype", PickleGlobal::kDType},
      {"_codecs", "encode", PickleGlobal::kEncode},
      {"builtins", "bytearray", PickleGlobal::kByteArray},
      {"__builtin__", "bytearray", PickleGlobal::kByteArray},
      {"collections", "OrderedDict", PickleGlobal::kOrderedDict},
  };
  for (const Row& row : kKnown)
    if (row.module == module && row.name == name) return row.global;
  return std::nullopt;
}

Status decode_latin1(std::string_view text, std::string& out) {
  out.clear();
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      out += text[i];
      continue;
    }
    if ((c != 0xc2 && c != 0xc3) || i + 1 == text.size() ||
        (static_cast<unsigned char>(text[i + 1]) & 0xc0) != 0x80)
      return corrupt("a text that should be bytes has a letter that is none");
    ++i;
    out += static_cast<char>((c & 3u) << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu));
  }
  return {};
}

Status reduce_pickle(PickleStack& stack) {
  uint32_t arguments = 0;
  uint32_t callable = 0;
  HEADRACE_TRY(stack.pop(arguments));
  HEADRACE_TRY(stack.pop(callable));
  const Pickle& made = stack.made();
  if (made.nodes[callable].type != Type::kGlobal || made.nodes[arguments].type != Type::kTuple)
    return corrupt(
        "the pickle wants code: opcode REDUCE of something else than NumPy's arrays; "
        "nothing was executed");
  // Before they are copied: a long tuple may be an argument again and again.
  if (made.items[made.nodes[arguments].items].size() > kMaxArguments)
    return not_understood("an array");
  return make(stack, {static_cast<PickleGlobal>(made.nodes[callable].integer),
                      made.items[made.nodes[arguments].items]});
}

Status build_pickle(PickleStack& stack) {
  uint32_t state = 0;
  uint32_t target = 0;
  HEADRACE_TRY(stack.pop(state));
  HEADRACE_TRY(stack.top(target));
  Pickle& made = stack.made();
  PickleNode& node = made.nodes[target];
  const bool is_array = node.type == Type::kArray;
  if ((!is_array && node.type != Type::kDType) || made.nodes[state].type != Type::kTuple)
    return corrupt(
        "the pickle wants code: opcode BUILD of something else than NumPy's arrays; "
        "nothing was executed");
  const std::vector<uint32_t>& items = made.items[made.nodes[state].items];
  if (!is_array) return build_type(made, node, items);
  if (items.size() != 5) return not_understood("an array");
  node.integer = made.nodes[items[3]].integer;
  made.items[node.items] = {items[1], items[2], items[4]};
  return {};
}

Result<PickleArray> pickle_array(const Pickle& pickle, const PickleNode& node) {
  const std::vector<uint32_t>& items = pickle.items[node.items];
  if (node.type != Type::kArray || items.size() != 3) return not_understood("an array");
  const PickleNode& shape = pickle.nodes[items[0]];
  const PickleNode& type = pickle.nodes[items[1]];
  const PickleNode& bytes = pickle.nodes[items[2]];
  if (shape.type != Type::kTuple || type.type != Type::kDType) return not_understood("an array");
  PickleArray out;
  HEADRACE_ASSIGN(out.header.type, parse_npy_type(type.order + std::string(type.text)));
  if (!is_bytes(bytes)) return not_understood("an array");
  // A long tuple may be the shape of array after array.
  if (pickle.items[shape.items].size() > kMaxAxes)
    return corrupt(fmt::format("an array of the pickle has more than {} axes", kMaxAxes));
  for (const uint32_t n : pickle.items[shape.items]) {
    if (pickle.nodes[n].type != Type::kInt || pickle.nodes[n].integer < 0)
      return corrupt("a shape of the pickle is no tuple of lengths");
    out.header.shape.push_back(static_cast<uint64_t>(pickle.nodes[n].integer));
  }
  const std::optional<uint64_t> count = count_items(out.header.shape, out.header.type.item_bytes);
  if (!count) return corrupt("an array of the pickle is beyond 2^63 bytes");
  out.header.items = *count;
  out.header.fortran_order = node.integer != 0 && out.header.shape.size() > 1;
  out.data = as_bytes(bytes.text);
  out.encoded = bytes.encoded;
  if (out.data.size() != out.header.data_bytes())
    return corrupt(fmt::format("an array of the pickle has {} bytes instead of {}", out.data.size(),
                               out.header.data_bytes()));
  return out;
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "base/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/utf8.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxAxes = 64;  // NumPy 2 has 64, NumPy 1 has 32
constexpr size_t kAlign = 64;

// The dict literal of a header.  One thread at a time; sticky: after a mistake ok() is false.
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  // Takes `c`, after white space, if it is there.
  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void want(char c) {
    if (!take(c)) ok_ = false;
  }
  std::string_view text() {
    skip_space();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return fail();
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return fail();
    const std::string_view out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return out;
  }
  std::string_view word() {
    skip_space();
    const size_t n =
        std::min(rest_.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
                 rest_.size());
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  // Python 2 writes 10L.
  uint64_t number() {
    skip_space();
    uint64_t v = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v);
    if (error != std::errc()) return fail(), 0;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    take('L');
    return v;
  }
  bool at_list() {
    skip_space();
    return !rest_.empty() && rest_.front() == '[';
  }
  bool done() {
    skip_space();
    return ok_ && rest_.empty();
  }

 private:
  void skip_space() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n\r"), rest_.size()));
  }
  std::string_view fail() {
    ok_ = false;
    rest_ = {};
    return {};
  }
  std::string_view rest_;
  bool ok_ = true;
};

Status structured() {
  return unsupported(
      "an array of a structured type, which is not read: save its fields as arrays of their own");
}

Status objects() {
  return unsupported(
      "an object array, which is a pickle inside: nothing was executed; save numbers or text "
      "(np.array(x, dtype=...)) instead");
}

Status parse_shape(Literal& in, std::vector<uint64_t>& out) {
  in.want('(');
  while (in.ok() && !in.take(')')) {
    if (out.size() == kMaxAxes) return corrupt("an array of more than 64 axes");
    out.push_back(in.number());
    if (!in.take(',')) {
      in.want(')');
      break;
    }
  }
  return {};
}

Status parse_dict(std::string_view text, NpyHeader& out) {
  Literal in(text);
  bool has_type = false;
  bool has_order = false;
  bool has_shape = false;
  in.want('{');
  while (in.ok() && !in.take('}')) {
    const std::string_view key = in.text();
    in.want(':');
    if (key == "descr" && !has_type) {
      has_type = true;
      if (in.at_list()) return structured();
      HEADRACE_ASSIGN(out.type, parse_npy_type(in.text()));
    } else if (key == "fortran_order" && !has_order) {
      has_order = true;
      const std::string_view word = in.word();
      out.fortran_order = word == "True";
      if (word != "True" && word != "False") return corrupt("fortran_order is no bool");
    } else if (key == "shape" && !has_shape) {
      has_shape = true;
      HEADRACE_TRY(parse_shape(in, out.shape));
    } else {
      return corrupt("the .npy header does not parse");
    }
    if (!in.take(',')) {
      in.want('}');
      break;
    }
  }
  if (!in.done() || !has_type || !has_order || !has_shape)
    return corrupt("the .npy header does not parse");
  return {};
}

template <typename T>
void swap_all(MutableBytes data) {
  for (size_t at = 0; at + sizeof(T) <= data.size(); at += sizeof(T)) {
    T v = load_le<T>(data.subspan(at));
    if constexpr (sizeof(T) == 2) v = __builtin_bswap16(v);
    if constexpr (sizeof(T) == 4) v = __builtin_bswap32(v);
    if constexpr (sizeof(T) == 8) v = __builtin_bswap64(v);
    store_le(data.subspan(at), v);
  }
}

// First axis fastest becomes last axis fastest.
void transpose(const NpyHeader& header, MutableBytes data) {
  const uint64_t item = header.type.item_bytes;
  const std::vector<std::byte> from(data.begin(), data.end());
  std::vector<uint64_t> index(header.shape.size(), 0);
  std::vector<uint64_t> stride(header.shape.size(), 1);
  for (size_t a = 1; a < stride.size(); ++a) stride[a] = stride[a - 1] * header.shape[a - 1];
  uint64_t at = 0;
  for (uint64_t n = 0; n < header.items; ++n) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at * item), item,
                data.begin() + static_cast<std::ptrdiff_t>(n * item));
    for (size_t a = index.size(); a-- > 0;) {
      at += stride[a];
      if (++index[a] < header.shape[a]) break;
      at -= stride[a] * header.shape[a];
      index[a] = 0;
    }
  }
}

}  // namespace

std::optional<DType> NpyType::dtype() const {
  for (size_t d = 0; d < kDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    const std::string name = npy_descr(dtype);
    if (!name.empty() && name[1] == kind && size_of(dtype) == item_bytes) return dtype;
  }
  return kind == 'b' && item_bytes == 1 ? std::optional(DType::kU8) : std::nullopt;
}

bool is_npy(Bytes head) {
  return as_text(head).starts_with(kNpyMagic);
}

Result<NpyType> parse_npy_type(std::string_view descr) {
  NpyType out{.descr = std::string(descr)};
  const Status bad = corrupt(fmt::format("'{}' is no type that NumPy writes", descr));
  if (descr.size() < 2) return bad;
  const char order = descr[0];
  if (order != '<' && order != '>' && order != '|' && order != '=') return bad;
  out.kind = descr[1];
  out.big_endian = order == '>';
  if (out.kind == 'O') return objects();
  if (std::string_view("biufcSUVMm").find(out.kind) == std::string_view::npos) return bad;
  const std::string_view digits = descr.substr(2);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), out.item_bytes);
  const bool has_unit = out.kind == 'M' || out.kind == 'm';  // "<M8[ns]"
  const bool all = end == digits.data() + digits.size();
  if (error != std::errc() || !(all || (has_unit && *end == '['))) return bad;
  if (out.item_bytes > uint64_t{1} << 31) return bad;
  if (out.kind == 'U') out.item_bytes *= 4;
  return out;
}

std::optional<uint64_t> count_items(const std::vector<uint64_t>& shape, uint64_t item_bytes) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t items = 1;
  uint64_t bytes = std::max<uint64_t>(1, item_bytes);
  // An axis of no length makes all of it empty, but not the others right.
  for (const uint64_t n : shape) {
    const uint64_t factor = std::max<uint64_t>(1, n);
    if (factor > kMost / bytes) return std::nullopt;
    bytes *= factor;
    items *= n;
  }
  return items;
}

Result<uint64_t> npy_header_bytes(Bytes start) {
  if (start.size() < kNpyStart || !as_text(start).starts_with(kNpyMagic))
    return corrupt("no .npy array begins here");
  const auto version = static_cast<uint8_t>(start[6]);
  if (version == 1) return uint64_t{10} + load_le<uint16_t>(start.subspan(8));
  if (version == 2 || version == 3) return uint64_t{12} + load_le<uint32_t>(start.subspan(8));
  return unsupported(fmt::format(".npy version {}; 1, 2 and 3 are read", version));
}

Result<NpyHeader> parse_npy(Bytes head, uint64_t total) {
  HEADRACE_ASSIGN(const uint64_t bytes, npy_header_bytes(head));
  if (bytes > head.size() || bytes > total)
    return corrupt(fmt::format("a .npy header of {} bytes in {}", bytes, total));
  NpyHeader out{.data = bytes};
  const uint64_t text_at = head[6] == std::byte{1} ? 10 : 12;
  HEADRACE_TRY(parse_dict(as_text(head.subspan(text_at, bytes - text_at)), out));
  const std::optional<uint64_t> items = count_items(out.shape, out.type.item_bytes);
  if (!items) return corrupt("a .npy shape beyond 2^63 bytes");
  out.items = *items;
  if (out.data_bytes() != total - bytes)
    return corrupt(fmt::format("the .npy header speaks of {} bytes of data, {} are there",
                               out.data_bytes(), total - bytes));
  return out;
}

std::string npy_descr(DType dtype) {
  static constexpr std::string_view kDescr[kDTypes] = {"|u1", "|i1", "<u2", "<i2", "<u4", "<i4",
                                                       "<u8", "<i8", "<f2", "",    "<f4", "<f8"};
  return std::string(kDescr[static_cast<size_t>(dtype)]);
}

std::string make_npy_header(DType dtype, const std::vector<uint64_t>& shape) {
  std::string extents;
  for (const uint64_t n : shape) extents += fmt::format("{}, ", n);
  if (shape.size() > 1) extents.resize(extents.size() - 2);
  if (shape.size() == 1) extents.pop_back();
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 npy_descr(dtype), extents);
  text.append(kAlign - (10 + text.size() + 1) % kAlign, ' ');
  text += '\n';
  std::string out(kNpyMagic);
  out += '\1';
  out += '\0';
  out += static_cast<char>(text.size() & 0xff);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

Result<std::string> npy_text(Bytes item, char kind) {
  std::string out;
  if (kind == 'S') {
    out = as_text(item);
    out.resize(out.find_last_not_of('\0') + 1);
    return out;
  }
  size_t letters = item.size() / 4;
  while (letters > 0 && load_le<uint32_t>(item.subspan(4 * letters - 4)) == 0) --letters;
  for (size_t i = 0; i < letters; ++i) {
    const auto c = load_le<uint32_t>(item.subspan(4 * i));
    if (c > 0x10ffff) return corrupt(fmt::format("{:#x} is no letter of Unicode", c));
    put_utf8(out, c);
  }
  return out;
}

Status normalise_npy(const NpyHeader& header, MutableBytes data) {
  if (data.size() != header.data_bytes()) return internal("not the data of this .npy");
  if (header.type.big_endian && header.type.item_bytes > 1) {
    if (!header.type.dtype()) return unsupported(fmt::format("big-endian '{}'", header.type.descr));
    if (header.type.item_bytes == 2) swap_all<uint16_t>(data);
    if (header.type.item_bytes == 4) swap_all<uint32_t>(data);
    if (header.type.item_bytes == 8) swap_all<uint64_t>(data);
  }
  // Items without bytes ('|V0') may be counted in any number: none of them moves.
  const bool has_bytes = header.items > 0 && header.type.item_bytes > 0;
  if (header.fortran_order && header.shape.size() > 1 && has_bytes) transpose(header, data);
  return {};
}

}  // namespace headrace

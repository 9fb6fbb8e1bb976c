// SPDX-License-Identifier: Apache-2.0
#include "base/npy.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

namespace headrace {
namespace {

// Why a type that NumPy has is none of ours; "" where the letter means nothing to us.
std::string_view name_of_kind(char kind) {
  switch (kind) {
    case 'O':
      return "Python objects";
    case 'V':
      return "structures or raw records";
    case 'U':
    case 'S':
    case 'a':
      return "texts";
    case 'M':
    case 'm':
      return "dates or times";
    case 'c':
      return "complex numbers";
    case 'f':
    case 'i':
    case 'u':
    case 'b':
      return "numbers of a size that is not read";
    default:
      return "";
  }
}

struct Element {
  std::string_view code;
  DType dtype;
};
constexpr Element kElements[] = {
    {"b1", DType::kU8},  {"u1", DType::kU8},  {"i1", DType::kI8},  {"u2", DType::kU16},
    {"i2", DType::kI16}, {"u4", DType::kU32}, {"i4", DType::kI32}, {"u8", DType::kU64},
    {"i8", DType::kI64}, {"f2", DType::kF16}, {"f4", DType::kF32}, {"f8", DType::kF64},
};

// The dict of Python: three known keys in any order.  One thread at a time.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, uint64_t offset) : text_(text), offset_(offset) {}

  Status run(NpyHeader& out) {
    if (!take('{')) return wrong("the header is no dict");
    bool has_type = false, has_order = false, has_shape = false;
    while (!take('}')) {
      HEADRACE_ASSIGN(const std::string_view key, string());
      if (!take(':')) return wrong("a ':' is missing in the header");
      if (key == "descr") {
        HEADRACE_TRY(type(out));
        has_type = true;
      } else if (key == "fortran_order") {
        HEADRACE_ASSIGN(out.fortran_order, truth());
        has_order = true;
      } else if (key == "shape") {
        HEADRACE_TRY(shape(out.shape));
        has_shape = true;
      } else {
        return wrong("the header has an unknown entry");
      }
      if (!take(',') && !at('}')) return wrong("a ',' is missing in the header");
    }
    space();
    if (at_ != text_.size()) return wrong("the header goes on after its dict");
    if (has_type && has_order && has_shape) return {};
    return wrong("the header lacks descr, fortran_order or shape");
  }

 private:
  Status wrong(std::string what) const { return corrupt(".npy: " + what).at(offset_ + at_); }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  bool at(char c) {
    space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    if (!at(c)) return false;
    ++at_;
    return true;
  }

  Result<std::string_view> string() {
    space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return wrong("a text is wanted in the header");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return wrong("a text of the header has no end");
    const std::string_view out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return out;
  }

  Result<bool> truth() {
    space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true},
                                      std::pair<std::string_view, bool>{"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    return wrong("fortran_order is True or False");
  }

  Status type(NpyHeader& out) {
    if (at('[') || at('(') || at('{'))
      return unsupported(".npy: its elements are structures; save each field as an array");
    HEADRACE_ASSIGN(const std::string_view descr, string());
    const size_t lead = descr.find_first_not_of("<>|=");
    const std::string_view code = lead == std::string_view::npos ? "" : descr.substr(lead);
    if (lead > 1 || code.empty()) return wrong("descr names no type");
    for (const Element& element : kElements) {
      if (element.code != code) continue;
      out.dtype = element.dtype;
      out.big_endian = descr.starts_with('>');
      return {};
    }
    const std::string_view kind = name_of_kind(code[0]);
    if (kind.empty()) return wrong("descr names no type");
    return unsupported(".npy: its elements are " + std::string(kind) + " ('" +
                       std::string(descr.substr(0, 16)) + "'), not numbers of 1 to 8 bytes");
  }

  Status shape(std::vector<int64_t>& out) {
    out.clear();
    if (!take('(')) return wrong("shape is no tuple");
    while (!take(')')) {
      space();
      int64_t extent = 0;
      const char* end = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + at_, end, extent);
      if (error != std::errc() || extent < 0) return wrong("shape holds no extent");
      at_ = static_cast<size_t>(stop - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote 3L
      if (out.size() == kNpyMostAxes) return wrong("shape has too many axes");
      out.push_back(extent);
      if (!take(',') && !at(')')) return wrong("a ',' is missing in shape");
    }
    return {};
  }

  const std::string_view text_;
  const uint64_t offset_;  // of text_ in the file
  size_t at_ = 0;
};

// Bytes of all elements; false where 63 bits do not hold them.
bool count_bytes(const NpyHeader& header, uint64_t& bytes) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  bytes = size_of(header.dtype);
  if (std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end()) bytes = 0;
  for (const int64_t extent : header.shape) {
    const auto n = static_cast<uint64_t>(extent);
    if (bytes != 0 && n > kMost / bytes) return false;
    bytes *= n;
  }
  return true;
}

}  // namespace

bool is_npy(Bytes head) {
  return as_text(head).starts_with(kNpyMagic);
}

Result<uint64_t> npy_header_bytes(Bytes head) {
  if (!is_npy(head)) return corrupt(".npy: the value does not begin as a .npy file does").at(0);
  if (head.size() < kNpyPreamble) return corrupt(".npy: ends within its header").at(head.size());
  const auto major = static_cast<unsigned>(head[6]);
  if (major < 1 || major > 3)
    return unsupported(".npy: version " + std::to_string(major) + "; 1 to 3 are read").at(6);
  const uint64_t length =
      major == 1 ? load_le<uint16_t>(head.subspan(8)) : load_le<uint32_t>(head.subspan(8));
  if (length > kNpyMostHeader) return corrupt(".npy: a header longer than 1 MiB").at(8);
  return (major == 1 ? 10 : 12) + length;
}

Result<NpyHeader> parse_npy_header(Bytes head) {
  HEADRACE_ASSIGN(const uint64_t end, npy_header_bytes(head));
  if (end > head.size()) return corrupt(".npy: ends within its header").at(head.size());
  const uint64_t begin = head[6] == std::byte{1} ? 10 : 12;
  NpyHeader out;
  HEADRACE_TRY(HeaderReader(as_text(head.subspan(begin, end - begin)), begin).run(out));
  out.data_begin = end;
  if (!count_bytes(out, out.data_bytes))
    return corrupt(".npy: more elements than can be").at(begin);
  return out;
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "format/npz/file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/half.h"

namespace headrace {
namespace {

constexpr std::string_view kArraySuffix = ".npy";
// A deflated member up to this size is inflated while indexing: it may be a number.
constexpr uint64_t kSmallMember = 4096;

template <typename T>
T element(Bytes data, uint64_t i) {
  return load_le<T>(data.subspan(i * sizeof(T)));
}

std::optional<NpzNumber> integer(DType dtype, int64_t v) {
  return NpzNumber{.dtype = dtype, .integer = v, .number = static_cast<double>(v)};
}

std::optional<NpzNumber> fraction(DType dtype, double v) {
  return NpzNumber{.dtype = dtype, .is_float = true, .number = v};
}

}  // namespace

std::optional<NpzNumber> number_at(Bytes data, DType dtype, uint64_t i) {
  switch (dtype) {
    case DType::kU8:
      return integer(dtype, element<uint8_t>(data, i));
    case DType::kI8:
      return integer(dtype, element<int8_t>(data, i));
    case DType::kU16:
      return integer(dtype, element<uint16_t>(data, i));
    case DType::kI16:
      return integer(dtype, element<int16_t>(data, i));
    case DType::kU32:
      return integer(dtype, element<uint32_t>(data, i));
    case DType::kI32:
      return integer(dtype, element<int32_t>(data, i));
    case DType::kU64:
      if (element<int64_t>(data, i) < 0) return std::nullopt;
      [[fallthrough]];
    case DType::kI64:
      return integer(dtype, element<int64_t>(data, i));
    case DType::kF16:
      return fraction(dtype, static_cast<double>(from_f16(element<uint16_t>(data, i))));
    case DType::kBF16:
      return fraction(dtype, static_cast<double>(from_bf16(element<uint16_t>(data, i))));
    case DType::kF32:
      return fraction(dtype, static_cast<double>(element<float>(data, i)));
    case DType::kF64:
      return fraction(dtype, element<double>(data, i));
  }
  return std::nullopt;
}

Status NpzFile::open() {
  HEADRACE_ASSIGN(std::vector<ZipMember> found, zip_.members());
  members_.resize(found.size());
  for (size_t i = 0; i < found.size(); ++i) members_[i].zip = std::move(found[i]);
  return each(&NpzFile::open_member);
}

Status NpzFile::inspect_all() {
  return each(&NpzFile::inspect);
}

// What no field holds is left out by name; a file of nothing else is refused with the reason.
Status NpzFile::each(Status (NpzFile::*step)(NpzMember&)) {
  // Samples that pack wrote hold nothing that is not read: there it is damage.
  const bool is_strict = std::all_of(members_.begin(), members_.end(), [](const NpzMember& m) {
    return m.zip.name.find('/') != std::string::npos;
  });
  std::vector<NpzMember> good;
  Status refused;
  for (NpzMember& member : members_) {
    Status s = (this->*step)(member);
    if (!s.ok()) {
      s = s.with(fmt::format("member '{}'", member.zip.name)).at(member.zip.header);
      if (is_strict || s.code() != Code::kUnsupported) return s;
      left_out_.emplace_back(member.name, s.message());
      if (refused.ok()) refused = s;
    } else {
      good.push_back(std::move(member));
    }
  }
  members_ = std::move(good);
  return members_.empty() ? refused : Status();
}

void NpzFile::leave_out(const std::function<std::string(const NpzMember&)>& why) {
  std::erase_if(members_, [&](const NpzMember& member) {
    std::string words = why(member);
    const bool goes = !words.empty();
    if (goes) left_out_.emplace_back(member.name, std::move(words));
    return goes;
  });
}

Status NpzFile::open_member(NpzMember& member) {
  HEADRACE_TRY(zip_.locate(member.zip));
  member.name = member.zip.name;
  member.is_array = member.name.ends_with(kArraySuffix);
  if (!member.is_array) return {};
  member.name.resize(member.name.size() - kArraySuffix.size());
  if (!member.zip.is_deflated()) return look_at_stored(member);
  return member.zip.size <= kSmallMember ? inspect(member) : Status();
}

Status NpzFile::look_at_stored(NpzMember& member) {
  const uint64_t size = member.zip.size;
  Bytes head;
  HEADRACE_TRY(zip_.stored_bytes(member.zip, 0, std::min(size, kNpyStart), head));
  HEADRACE_ASSIGN(const uint64_t header, npy_header_bytes(head));
  if (header > size) return corrupt("the .npy header is longer than the member");
  HEADRACE_TRY(zip_.stored_bytes(member.zip, 0, header, head));
  HEADRACE_ASSIGN(member.header, parse_npy(head, size));
  if (!member.header->shape.empty()) return {};
  Buffer contents;
  HEADRACE_TRY(zip_.contents(member.zip, contents));
  return take_number(member, contents.bytes());
}

Status NpzFile::inspect(NpzMember& member) {
  if (member.header || !member.is_array) return {};
  Buffer contents;
  HEADRACE_TRY(zip_.contents(member.zip, contents));
  HEADRACE_ASSIGN(member.header, parse_npy(contents.bytes(), contents.size()));
  return member.header->shape.empty() ? take_number(member, contents.bytes()) : Status();
}

Status NpzFile::take_number(NpzMember& member, Bytes contents) {
  const NpyType& type = member.header->type;
  if (type.is_text() && !(type.kind == 'U' && type.big_endian)) {
    HEADRACE_ASSIGN(member.text, npy_text(contents.subspan(member.header->data), type.kind));
    return {};
  }
  const std::optional<DType> dtype = type.dtype();
  if (!dtype) return {};
  std::vector<std::byte> data(contents.begin() + static_cast<std::ptrdiff_t>(member.header->data),
                              contents.end());
  HEADRACE_TRY(normalise_npy(*member.header, data));
  member.number = number_at(data, *dtype, 0);
  return {};
}

Status NpzFile::array(const NpzMember& member, Buffer& contents, Bytes& data) {
  HEADRACE_TRY(zip_.contents(member.zip, contents));
  const MutableBytes raw = contents.span().subspan(member.header->data);
  HEADRACE_TRY(normalise_npy(*member.header, raw));
  data = raw;
  return {};
}

}  // namespace headrace

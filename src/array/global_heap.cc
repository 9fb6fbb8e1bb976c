// SPDX-License-Identifier: Apache-2.0
#include "array/global_heap.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace {
namespace {

constexpr uint64_t kAlone = 4096;            // what is read for a collection that lies alone
constexpr uint64_t kNeighbours = 128 << 10;  // and where the next one lies near
constexpr uint64_t kNear = 16 << 10;
constexpr std::string_view kRemedy =
    "the file is damaged or was not closed after writing; copy or write it again";

uint64_t load_number(Bytes at, uint32_t bytes) {
  uint64_t value = 0;
  for (uint32_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint64_t>(at[i]);
  return value;
}

uint64_t undefined_of(uint32_t bytes) {
  return bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1;
}

uint64_t aligned(uint64_t n) {
  return (n + 7) & ~uint64_t{7};
}

Status damaged(std::string what, uint64_t offset) {
  return corrupt(fmt::format("global heap: {}: {}", what, kRemedy)).at(offset);
}

}  // namespace

Status check_heap_form(const HeapForm& form) {
  for (const uint32_t n : {form.address_bytes, form.size_bytes})
    if (n != 2 && n != 4 && n != 8)
      return unsupported(fmt::format("addresses or sizes of {} bytes; 2, 4 and 8 are read", n));
  return {};
}

HeapReference parse_reference(Bytes stored, const HeapForm& form) {
  HeapReference out;
  out.elements = load_le<uint32_t>(stored);
  const uint64_t address = load_number(stored.subspan(4), form.address_bytes);
  out.object = load_le<uint32_t>(stored.subspan(4 + form.address_bytes));
  if (address == 0 || address == undefined_of(form.address_bytes)) return {};
  out.address = address > ~uint64_t{0} - form.base ? ~uint64_t{0} : address + form.base;
  return out;
}

Result<Bytes> HeapReader::bytes_at(uint64_t offset, uint64_t length) {
  if (offset > form_.file_bytes || length > form_.file_bytes - offset)
    return damaged(
        fmt::format("an address past the end of the file, which has {} bytes", form_.file_bytes),
        offset);
  const uint64_t window_end = window_begin_ + window_.size();
  if (offset < window_begin_ || offset > window_end || length > window_end - offset) {
    const bool near = window_.size() > 0 && offset >= window_begin_ &&
                      (offset <= window_end || offset - window_end <= kNear);
    const uint64_t wanted = std::max(length, near ? kNeighbours : kAlone);
    window_begin_ = offset;
    const Status status = read_(offset, std::min(wanted, form_.file_bytes - offset), window_);
    if (!status.ok()) {
      window_.resize(0);
      return status;
    }
    if (window_.size() < length) return internal("a read of another size than was asked for");
  }
  return window_.bytes().subspan(offset - window_begin_, length);
}

Status HeapReader::visit_objects(uint64_t address, uint64_t limit, const Visit& visit) {
  const uint64_t head_bytes = aligned(8 + form_.size_bytes);  // of collections and objects alike
  HEADRACE_ASSIGN(const Bytes head, bytes_at(address, head_bytes));
  if (as_text(head.first(4)) != "GCOL")
    return damaged("a value is said to lie in a collection here, and there is none", address);
  if (head[4] != std::byte{1})
    return damaged(fmt::format("a collection of version {}", static_cast<int>(head[4])), address);
  const uint64_t size = load_number(head.subspan(8), form_.size_bytes);
  const uint64_t room = std::min(limit, form_.file_bytes) - address;
  if (size < head_bytes || size > room)
    return damaged(fmt::format("a collection of {} bytes where {} are left", size, room), address);
  uint64_t at = address + head_bytes;
  for (uint64_t left = size - head_bytes; left >= head_bytes;) {
    HEADRACE_ASSIGN(const Bytes object, bytes_at(at, head_bytes));
    const auto number = load_le<uint16_t>(object);
    const uint64_t bytes = load_number(object.subspan(8), form_.size_bytes);
    // Free space ends the collection unless it says that something follows.
    if (number == 0 && bytes < head_bytes) return {};
    const uint64_t before = number == 0 ? 0 : head_bytes;
    if (bytes > left - before || aligned(bytes) > left - before)
      return damaged(fmt::format("object {} of {} bytes where {} are left", number, bytes, left),
                     at);
    if (number != 0 && !visit(number, at + head_bytes, bytes)) return {};
    at += before + aligned(bytes);
    left -= before + aligned(bytes);
  }
  return {};
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a stored chunk: through every filter, and as a Blosc frame opened by our own hands,
// whose parts must be parts of the whole.

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "array/blosc_frame.h"
#include "array/filters.h"

namespace {

using namespace headrace;

constexpr uint64_t kMost = 1 << 20;

// The frame's own length is put right: to guess it is no work for a fuzzer.
void as_blosc(std::vector<std::byte> frame) {
  if (frame.size() < 16) return;
  store_le(MutableBytes(frame).subspan(12), static_cast<uint32_t>(frame.size()));
  const auto parsed = BloscFrame::parse(frame);
  if (!parsed || parsed->bytes() > kMost) return;
  std::vector<std::byte> whole(parsed->bytes());
  if (!parsed->open(0, whole, NextUse::kRest).ok()) return;
  const uint64_t begin = whole.size() / 3 / 240 * 240;  // of whole elements, mostly
  std::vector<std::byte> part(std::min<size_t>(whole.size() - begin, 4800));
  if (!parsed->holds(begin, part.size())) return;
  if (!parsed->open(begin, part, NextUse::kRead).ok()) std::abort();
  if (!std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)))
    std::abort();
}

}  // namespace

// Which filter, bytes of an element, what must come out (u16, eights of bytes); the chunk.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const Bytes stored = std::as_bytes(std::span(data, size)).subspan(4);
  constexpr auto kFilters = static_cast<uint8_t>(ChunkFilter::kDelta) + 1;
  const auto filter = static_cast<ChunkFilter>(data[0] % kFilters);
  if (filter == ChunkFilter::kBlosc) {
    as_blosc({stored.begin(), stored.end()});
    return 0;
  }
  const FilterChain chain{{filter, data[1]}};
  if (!check_chain(chain).ok()) return 0;
  Buffer out;
  const uint64_t expected = 8 * uint64_t{load_le<uint16_t>(std::as_bytes(std::span(data + 2, 2)))};
  const Status status = undo_filters(chain, 0, stored, expected, out);
  if (status.ok() && out.size() != expected) std::abort();
  return 0;
}

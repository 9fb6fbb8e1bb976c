// SPDX-License-Identifier: Apache-2.0
#include "array/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "array/blosc.h"
#include "array/shuffle.h"
#include "base/crc32c.h"
#include "base/inflate.h"
#include "base/lz4.h"
#include "base/zstd.h"

namespace headrace {
namespace {

constexpr std::array<std::string_view, 12> kNames = {
    "zlib", "gzip",  "deflate", "lz4",        "lz4-hdf5", "lzf",
    "zstd", "blosc", "shuffle", "fletcher32", "crc32c",   "delta",
};

std::string_view name_of(ChunkFilter filter) {
  return kNames[static_cast<size_t>(filter)];
}

uint32_t load_be32(Bytes at) {
  return (static_cast<uint32_t>(at[0]) << 24) | (static_cast<uint32_t>(at[1]) << 16) |
         (static_cast<uint32_t>(at[2]) << 8) | static_cast<uint32_t>(at[3]);
}

Status exactly(const Result<size_t>& got, uint64_t expected) {
  if (!got.ok()) return got.status();
  if (got.value() != expected)
    return corrupt(
        fmt::format("the chunk opens to {} bytes, {} are expected", got.value(), expected));
  return {};
}

Status undo_lz4(Bytes in, MutableBytes out) {
  if (in.size() < 4 || load_le<uint32_t>(in) != out.size())
    return corrupt("an LZ4 chunk that says another size than its shape");
  return exactly(unpack_lz4(in.subspan(4), out), out.size());
}

// u64 size and u32 block size, then each block after its own u32 size; all big-endian.
Status undo_lz4_hdf5(Bytes in, MutableBytes out) {
  if (in.size() < 12) return corrupt("an LZ4 chunk that is cut short");
  const uint64_t size = (uint64_t{load_be32(in)} << 32) | load_be32(in.subspan(4));
  const uint64_t block = load_be32(in.subspan(8));
  if (size != out.size() || block == 0)
    return corrupt("an LZ4 chunk that says another size than its shape");
  in = in.subspan(12);
  while (!out.empty()) {
    const uint64_t want = std::min<uint64_t>(block, out.size());
    if (in.size() < 4) return corrupt("an LZ4 chunk that is cut short");
    const uint64_t stored = load_be32(in);
    in = in.subspan(4);
    if (stored > in.size()) return corrupt("an LZ4 chunk that is cut short");
    if (stored == want)  // did not become smaller
      std::copy_n(in.begin(), want, out.begin());
    else
      HEADRACE_TRY(exactly(unpack_lz4(in.first(stored), out.first(want)), want));
    in = in.subspan(stored);
    out = out.subspan(want);
  }
  return {};
}

// LZF: a control byte below 32 copies that many and one more; else a match of 3 bits of length
// (7: one more byte) and 13 bits of distance.
Status undo_lzf(Bytes in, MutableBytes out) {
  size_t at = 0;
  size_t to = 0;
  const auto next = [&] { return static_cast<size_t>(in[at++]); };
  while (at < in.size()) {
    const size_t control = next();
    if (control < 32) {
      const size_t n = control + 1;
      if (n > in.size() - at || n > out.size() - to) return corrupt("an LZF chunk does not parse");
      std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(at), n,
                  out.begin() + static_cast<std::ptrdiff_t>(to));
      at += n;
      to += n;
      continue;
    }
    size_t n = control >> 5;
    if (n == 7) {
      if (at == in.size()) return corrupt("an LZF chunk does not parse");
      n += next();
    }
    if (at == in.size()) return corrupt("an LZF chunk does not parse");
    const size_t back = ((control & 31) << 8 | next()) + 1;
    n += 2;
    if (back > to || n > out.size() - to) return corrupt("an LZF chunk does not parse");
    for (size_t i = 0; i < n; ++i, ++to) out[to] = out[to - back];  // may overlap itself
  }
  return to == out.size() ? Status() : corrupt("an LZF chunk that is cut short");
}

// HDF5's variant: 16-bit big-endian words, both sums reduced at the end.
uint32_t fletcher32(Bytes data) {
  uint32_t low = 0;
  uint32_t high = 0;
  size_t words = data.size() / 2;
  size_t at = 0;
  while (words > 0) {
    for (size_t n = std::min<size_t>(words, 360); n > 0; --n, --words, at += 2) {
      low += (static_cast<uint32_t>(data[at]) << 8) | static_cast<uint32_t>(data[at + 1]);
      high += low;
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
  }
  if (data.size() % 2 != 0) {
    low += static_cast<uint32_t>(data[at]) << 8;
    high += low;
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
  }
  low = (low & 0xffff) + (low >> 16);
  high = (high & 0xffff) + (high >> 16);
  return (high << 16) | low;
}

Result<Bytes> without_checksum(ChunkFilter filter, Bytes in) {
  if (in.size() < 4) return corrupt("a chunk that is shorter than its checksum");
  const Bytes data = in.first(in.size() - 4);
  const auto said = load_le<uint32_t>(in.subspan(data.size()));
  const uint32_t is = filter == ChunkFilter::kCrc32c ? crc32c(data) : fletcher32(data);
  if (is != said)
    return corrupt(fmt::format("the checksum of the chunk is wrong: {:08x} is stored, {:08x} found",
                               said, is));
  return data;
}

template <typename T>
void undo_delta_as(MutableBytes data) {
  T sum{};
  for (size_t at = 0; at + sizeof(T) <= data.size(); at += sizeof(T)) {
    const T step = load_le<T>(data.subspan(at));
    sum = static_cast<T>(sum + step);
    store_le(data.subspan(at), sum);
  }
}

Status undo_delta(MutableBytes data, DType dtype) {
  switch (dtype) {
    case DType::kU8:
    case DType::kI8:
      return undo_delta_as<uint8_t>(data), Status();
    case DType::kU16:
    case DType::kI16:
      return undo_delta_as<uint16_t>(data), Status();
    case DType::kU32:
    case DType::kI32:
      return undo_delta_as<uint32_t>(data), Status();
    case DType::kU64:
    case DType::kI64:
      return undo_delta_as<uint64_t>(data), Status();
    case DType::kF32:
      return undo_delta_as<float>(data), Status();
    case DType::kF64:
      return undo_delta_as<double>(data), Status();
    default:
      return unsupported(fmt::format("delta over {}", dtype_name(dtype)));
  }
}

bool is_checksum(ChunkFilter filter) {
  return filter == ChunkFilter::kFletcher32 || filter == ChunkFilter::kCrc32c;
}
bool is_compressor(ChunkFilter filter) {
  return filter <= ChunkFilter::kBlosc;
}

// What went into a step when it was applied: the chunk, and the checksums behind it.
uint64_t bytes_before(const FilterChain& chain, uint32_t skipped, size_t step, uint64_t expected) {
  uint64_t size = expected;
  for (size_t i = 0; i < step; ++i)
    if ((skipped >> i & 1u) == 0 && is_checksum(chain[i].filter)) size += 4;
  return size;
}

// How much a byte can become at most, rounded up: sizes come from the file, and memory is not
// asked for where the stored bytes cannot fill it.
uint64_t most_from_a_byte(ChunkFilter filter) {
  switch (filter) {
    case ChunkFilter::kZlib:
    case ChunkFilter::kGzip:
    case ChunkFilter::kDeflate:
      return 1100;
    case ChunkFilter::kLz4Block:
    case ChunkFilter::kLz4Hdf5:
    case ChunkFilter::kLzf:
      return 300;
    case ChunkFilter::kZstd:
    case ChunkFilter::kBlosc:
      return uint64_t{1} << 17;
    default:
      return 1;
  }
}

Status undo_step(const FilterStep& step, Bytes in, MutableBytes out, NextUse next_use) {
  switch (step.filter) {
    case ChunkFilter::kZlib:
    case ChunkFilter::kGzip:
      return inflate_whole(in, out);
    case ChunkFilter::kDeflate:
      return inflate_raw(in, out);
    case ChunkFilter::kLz4Block:
      return undo_lz4(in, out);
    case ChunkFilter::kLz4Hdf5:
      return undo_lz4_hdf5(in, out);
    case ChunkFilter::kLzf:
      return undo_lzf(in, out);
    case ChunkFilter::kZstd:
      return exactly(unpack_zstd(in, out), out.size());
    case ChunkFilter::kBlosc:
      return exactly(unpack_blosc(in, out, next_use), out.size());
    case ChunkFilter::kShuffle:
      if (in.size() != out.size()) return corrupt("a chunk of another size than its shape says");
      return undo_shuffle(in, out, step.parameter, next_use), Status();
    case ChunkFilter::kDelta:
      if (in.size() != out.size()) return corrupt("a chunk of another size than its shape says");
      std::copy(in.begin(), in.end(), out.begin());
      return undo_delta(out, static_cast<DType>(step.parameter));
    case ChunkFilter::kFletcher32:
    case ChunkFilter::kCrc32c:
      break;
  }
  return internal("no such filter");
}

// Memory is not asked for where the stored bytes cannot fill it.
Status check_growth(const FilterChain& chain, uint32_t skipped, uint64_t stored,
                    uint64_t expected) {
  uint64_t most = 1;
  std::string_view name = "chunk";
  for (size_t i = 0; i < chain.size(); ++i)
    if ((skipped >> i & 1u) == 0 && is_compressor(chain[i].filter)) {
      most = most_from_a_byte(chain[i].filter);
      name = name_of(chain[i].filter);
    }
  if (expected / most > stored)
    return corrupt(fmt::format("{}: {} bytes cannot become a chunk of {}", name, stored, expected));
  return {};
}

// The last of the steps that is no checksum; none: past the end.
size_t last_change(const FilterChain& chain, const std::vector<size_t>& steps) {
  size_t k = steps.size();
  while (k > 0 && is_checksum(chain[steps[k - 1]].filter)) --k;
  return k == 0 ? steps.size() : k - 1;
}

// Memory between two steps, the thread's own and kept: fresh pages cost as much as decoding.
class Between {
 public:
  MutableBytes next(uint64_t size) {
    thread_local std::array<Buffer, 2> buffers;
    Buffer& buffer = buffers[turn_ ^= 1u];
    buffer.resize(size);
    return buffer.span();
  }

 private:
  size_t turn_ = 0;
};

}  // namespace

std::optional<ChunkFilter> chunk_filter_named(std::string_view name) {
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<ChunkFilter>(at - kNames.begin());
}

Status check_chain(const FilterChain& chain) {
  size_t compressors = 0;
  for (const FilterStep& step : chain) {
    if (is_compressor(step.filter)) ++compressors;
    if (step.filter == ChunkFilter::kDelta) {
      const auto dtype = static_cast<DType>(step.parameter);
      if (step.parameter >= kDTypes || dtype == DType::kF16 || dtype == DType::kBF16)
        return unsupported("delta over numbers of 16 bits with a fraction");
    }
  }
  if (compressors > 1)
    return unsupported(fmt::format("chunks that were compressed twice ({})", chain_text(chain)));
  if (chain.size() > 32) return unsupported("more than 32 filters");
  return {};
}

std::string chain_text(const FilterChain& chain) {
  std::string text;
  for (const FilterStep& step : chain) {
    if (!text.empty()) text += ' ';
    text += name_of(step.filter);
    if (step.parameter != 0) text += fmt::format(":{}", step.parameter);
  }
  return text;
}

Status undo_filters(const FilterChain& chain, uint32_t skipped, Bytes stored, uint64_t expected,
                    Buffer& out) {
  HEADRACE_TRY(check_growth(chain, skipped, stored.size(), expected));
  out.resize(expected);
  return undo_filters_in_part(chain, skipped, stored, expected, 0, out.span());
}

bool opens_in_part(const FilterChain& chain) {
  return chain.size() == 1 && chain[0].filter == ChunkFilter::kBlosc;
}

Status undo_filters_in_part(const FilterChain& chain, uint32_t skipped, Bytes stored,
                            uint64_t expected, uint64_t begin, MutableBytes out, NextUse next_use) {
  if (begin > expected || out.size() > expected - begin)
    return internal("a part beyond the end of its chunk");
  HEADRACE_TRY(check_growth(chain, skipped, stored.size(), expected));
  const bool whole = out.size() == expected;
  if (!whole && opens_in_part(chain) && skipped == 0) {
    HEADRACE_ASSIGN(const bool done, unpack_blosc_part(stored, expected, begin, out, next_use));
    if (done) return {};
  }
  std::vector<size_t> steps;  // those to be undone, from the last on
  for (size_t i = chain.size(); i-- > 0;)
    if ((skipped >> i & 1u) == 0) steps.push_back(i);
  // Steps before the last write to memory between them, the last to where it is wanted.
  Between between;
  const size_t last = last_change(chain, steps);
  Bytes in = stored;
  for (size_t k = 0; k < steps.size(); ++k) {
    const FilterStep& step = chain[steps[k]];
    if (is_checksum(step.filter)) {
      HEADRACE_ASSIGN(in, without_checksum(step.filter, in));
      continue;
    }
    const uint64_t size = bytes_before(chain, skipped, steps[k], expected);
    const bool straight = k == last && whole && size == expected;
    const MutableBytes into = straight ? out : between.next(size);
    if (Status s = undo_step(step, in, into, straight ? next_use : NextUse::kRead); !s.ok())
      return s.with(std::string(name_of(step.filter)));
    in = into;
  }
  if (in.size() != expected)
    return corrupt(
        fmt::format("the chunk opens to {} bytes, {} are expected", in.size(), expected));
  if (in.data() != out.data() && !out.empty())
    std::memcpy(out.data(), in.data() + begin, out.size());
  return {};
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "array/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "array/blosc.h"
#include "base/crc32c.h"
#include "base/lz4.h"
#include "base/zlib.h"
#include "base/zstd.h"

namespace headrace {
namespace {

constexpr std::array<std::string_view, 11> kNames = {
    "zlib",  "gzip",    "lz4",        "lz4-hdf5", "lzf",   "zstd",
    "blosc", "shuffle", "fletcher32", "crc32c",   "delta",
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

void undo_shuffle(Bytes in, MutableBytes out, size_t item) {
  const size_t n = in.size() / std::max<size_t>(1, item);
  if (item < 2 || n < 2) {
    std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  for (size_t b = 0; b < item; ++b) {
    const std::byte* from = in.data() + b * n;
    std::byte* to = out.data() + b;
    for (size_t i = 0; i < n; ++i, to += item) *to = from[i];
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(n * item), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(n * item));
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

Status undo_step(const FilterStep& step, Bytes in, MutableBytes out) {
  switch (step.filter) {
    case ChunkFilter::kZlib:
    case ChunkFilter::kGzip:
      return exactly(unpack_zlib(in, out), out.size());
    case ChunkFilter::kLz4Block:
      return undo_lz4(in, out);
    case ChunkFilter::kLz4Hdf5:
      return undo_lz4_hdf5(in, out);
    case ChunkFilter::kLzf:
      return undo_lzf(in, out);
    case ChunkFilter::kZstd:
      return exactly(unpack_zstd(in, out), out.size());
    case ChunkFilter::kBlosc:
      return exactly(unpack_blosc(in, out), out.size());
    case ChunkFilter::kShuffle:
      if (in.size() != out.size()) return corrupt("a chunk of another size than its shape says");
      return undo_shuffle(in, out, step.parameter), Status();
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
  Buffer spare;
  Bytes in = stored;
  bool in_out = false;  // `in` lies in `out`
  for (size_t i = chain.size(); i-- > 0;) {
    if ((skipped >> i & 1u) != 0) continue;
    const FilterStep& step = chain[i];
    if (is_checksum(step.filter)) {
      HEADRACE_ASSIGN(in, without_checksum(step.filter, in));
      continue;
    }
    Buffer& into = in_out ? spare : out;
    const uint64_t wanted = bytes_before(chain, skipped, i, expected);
    if (wanted / most_from_a_byte(step.filter) > in.size())
      return corrupt(fmt::format("{}: {} bytes cannot become a chunk of {}", name_of(step.filter),
                                 in.size(), wanted));
    into.resize(wanted);
    if (Status s = undo_step(step, in, into.span()); !s.ok())
      return s.with(std::string(name_of(step.filter)));
    in = into.bytes();
    in_out = !in_out;
  }
  if (in.size() != expected)
    return corrupt(
        fmt::format("the chunk opens to {} bytes, {} are expected", in.size(), expected));
  if (!in_out && in.data() == spare.data() && !spare.bytes().empty()) {
    std::swap(out, spare);
    in_out = true;
  }
  out.resize(expected);  // only shrinks where the bytes are there already
  if (!in_out) std::copy(in.begin(), in.end(), out.data());
  return {};
}

}  // namespace headrace

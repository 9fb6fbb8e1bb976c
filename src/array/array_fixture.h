// SPDX-License-Identifier: Apache-2.0
//
// For tests: chunks as writers store them, each filter applied by hand in its plainest form
// (compressors store their input as it is); what real compressors write is read in tests/.
#pragma once

#include <array>
#include <vector>

#include "array/filters.h"
#include "base/crc32c.h"

namespace headrace {

using ByteList = std::vector<std::byte>;

inline void put_le(ByteList& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}
inline void put_be(ByteList& out, uint64_t value, size_t bytes) {
  for (size_t i = bytes; i-- > 0;) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}
inline void put_all(ByteList& out, Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// Deflate's stored blocks.
inline void put_deflate(ByteList& out, Bytes data) {
  do {
    const size_t n = std::min<size_t>(data.size(), 65535);
    out.push_back(static_cast<std::byte>(n == data.size() ? 1 : 0));
    put_le(out, n, 2);
    put_le(out, ~n & 0xffff, 2);
    put_all(out, data.first(n));
    data = data.subspan(n);
  } while (!data.empty());
}

inline ByteList do_zlib(Bytes data) {
  ByteList out = {std::byte{0x78}, std::byte{0x01}};
  put_deflate(out, data);
  uint32_t a = 1;
  uint32_t b = 0;
  for (const std::byte byte : data) {
    a = (a + static_cast<uint32_t>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  put_be(out, (uint64_t{b} << 16) | a, 4);
  return out;
}

inline ByteList do_gzip(Bytes data) {
  ByteList out = {std::byte{0x1f}, std::byte{0x8b}, std::byte{8}};
  put_le(out, 0, 6);
  out.push_back(std::byte{255});
  put_deflate(out, data);
  uint32_t crc = ~uint32_t{0};
  for (const std::byte byte : data) {
    crc ^= static_cast<uint32_t>(byte);
    for (int k = 0; k < 8; ++k) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
  }
  put_le(out, ~crc, 4);
  put_le(out, data.size(), 4);
  return out;
}

// One sequence of literals.
inline void put_lz4_block(ByteList& out, Bytes data) {
  out.push_back(static_cast<std::byte>(std::min<size_t>(data.size(), 15) << 4));
  if (data.size() >= 15) {
    size_t left = data.size() - 15;
    for (; left >= 255; left -= 255) out.push_back(std::byte{255});
    out.push_back(static_cast<std::byte>(left));
  }
  put_all(out, data);
}

inline ByteList do_lz4(Bytes data) {
  ByteList out;
  put_le(out, data.size(), 4);
  put_lz4_block(out, data);
  return out;
}

// Every other block as it is.
inline ByteList do_lz4_hdf5(Bytes data) {
  constexpr size_t kBlock = 40;
  ByteList out;
  put_be(out, data.size(), 8);
  put_be(out, kBlock, 4);
  for (bool as_it_is = false; !data.empty(); as_it_is = !as_it_is) {
    const size_t n = std::min(data.size(), kBlock);
    ByteList block;
    if (as_it_is)
      put_all(block, data.first(n));
    else
      put_lz4_block(block, data.first(n));
    put_be(out, block.size(), 4);
    put_all(out, block);
    data = data.subspan(n);
  }
  return out;
}

// Literals, and matches of one byte repeated.
inline ByteList do_lzf(Bytes data) {
  ByteList out;
  for (size_t at = 0; at < data.size();) {
    size_t same = 1;
    while (at + same < data.size() && same < 264 && data[at + same] == data[at]) ++same;
    if (at > 0 && data[at - 1] == data[at] && same >= 3) {
      const size_t n = same - 2;
      out.push_back(static_cast<std::byte>(std::min<size_t>(n, 7) << 5));
      if (n >= 7) out.push_back(static_cast<std::byte>(n - 7));
      out.push_back(std::byte{0});
      at += same;
    } else {
      out.push_back(std::byte{0});
      out.push_back(data[at++]);
    }
  }
  return out;
}

// A frame of raw blocks with the size in its header.
inline ByteList do_zstd(Bytes data) {
  ByteList out;
  put_le(out, 0xfd2fb528u, 4);
  out.push_back(std::byte{0xa0});  // one segment, four bytes of size
  put_le(out, data.size(), 4);
  do {
    const size_t n = std::min<size_t>(data.size(), 100000);
    put_le(out, (n << 3) | (n == data.size() ? 1 : 0), 3);
    put_all(out, data.first(n));
    data = data.subspan(n);
  } while (!data.empty());
  return out;
}

// A version 2 frame whose data were copied.
inline ByteList do_blosc(Bytes data, uint8_t item) {
  ByteList out = {std::byte{2}, std::byte{1}, std::byte{2}, static_cast<std::byte>(item)};
  put_le(out, data.size(), 4);
  put_le(out, std::max<size_t>(1, data.size()), 4);
  put_le(out, data.size() + 16, 4);
  put_all(out, data);
  return out;
}

inline ByteList do_shuffle(Bytes data, size_t item) {
  ByteList out(data.begin(), data.end());
  const size_t n = item == 0 ? 0 : data.size() / item;
  for (size_t i = 0; i < n; ++i)
    for (size_t b = 0; b < item; ++b) out[b * n + i] = data[i * item + b];
  return out;
}

// The textbook's sums, reduced at every word.
inline ByteList do_fletcher32(Bytes data) {
  uint32_t low = 0;
  uint32_t high = 0;
  for (size_t at = 0; at < data.size(); at += 2) {
    low += static_cast<uint32_t>(data[at]) << 8;
    if (at + 1 < data.size()) low += static_cast<uint32_t>(data[at + 1]);
    low = (low & 0xffff) + (low >> 16);
    high += low;
    high = (high & 0xffff) + (high >> 16);
  }
  ByteList out(data.begin(), data.end());
  put_le(out, (high << 16) | low, 4);
  return out;
}

template <typename T>
void delta_as(ByteList& data) {
  T before{};
  for (size_t at = 0; at + sizeof(T) <= data.size(); at += sizeof(T)) {
    const T value = load_le<T>(Bytes(data).subspan(at));
    store_le(MutableBytes(data).subspan(at), static_cast<T>(value - before));
    before = value;
  }
}

inline ByteList do_delta(Bytes data, DType dtype) {
  ByteList out(data.begin(), data.end());
  switch (size_of(dtype)) {
    case 1:
      delta_as<uint8_t>(out);
      break;
    case 2:
      delta_as<uint16_t>(out);
      break;
    case 4:
      delta_as<uint32_t>(out);
      break;
    default:
      delta_as<uint64_t>(out);
  }
  return out;
}

inline ByteList apply_filters(const FilterChain& chain, uint32_t skipped, Bytes data) {
  ByteList out(data.begin(), data.end());
  for (size_t i = 0; i < chain.size(); ++i) {
    if ((skipped >> i & 1u) != 0) continue;
    const ByteList in = std::move(out);
    switch (chain[i].filter) {
      case ChunkFilter::kZlib:
        out = do_zlib(in);
        break;
      case ChunkFilter::kGzip:
        out = do_gzip(in);
        break;
      case ChunkFilter::kDeflate:
        out.clear();
        put_deflate(out, in);
        break;
      case ChunkFilter::kLz4Block:
        out = do_lz4(in);
        break;
      case ChunkFilter::kLz4Hdf5:
        out = do_lz4_hdf5(in);
        break;
      case ChunkFilter::kLzf:
        out = do_lzf(in);
        break;
      case ChunkFilter::kZstd:
        out = do_zstd(in);
        break;
      case ChunkFilter::kBlosc:
        out = do_blosc(in, 4);
        break;
      case ChunkFilter::kShuffle:
        out = do_shuffle(in, chain[i].parameter);
        break;
      case ChunkFilter::kFletcher32:
        out = do_fletcher32(in);
        break;
      case ChunkFilter::kCrc32c:
        out = in;
        put_le(out, crc32c(in), 4);
        break;
      case ChunkFilter::kDelta:
        out = do_delta(in, static_cast<DType>(chain[i].parameter));
        break;
    }
  }
  return out;
}

}  // namespace headrace

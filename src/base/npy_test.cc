// SPDX-License-Identifier: Apache-2.0
#include "base/npy.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

std::string npy(std::string dict, int version = 1, size_t data = 0) {
  dict.resize((dict.size() + 1 + 12 + 63) / 64 * 64 - 12, ' ');
  dict += '\n';
  std::string out(kNpyMagic);
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    out += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  return out + dict + std::string(data, 'x');
}

Result<NpyHeader> parse(const std::string& file) {
  return parse_npy_header(as_bytes(file));
}

TEST(NpyTest, VersionsOneToThreeSayTheSame) {
  for (const int version : {1, 2, 3}) {
    const std::string file =
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", version);
    const NpyHeader h = parse(file).value();
    EXPECT_EQ(h.dtype, DType::kF32);
    EXPECT_FALSE(h.big_endian);
    EXPECT_FALSE(h.fortran_order);
    EXPECT_EQ(h.shape, (std::vector<int64_t>{3, 4}));
    EXPECT_EQ(h.data_begin, file.size());
    EXPECT_EQ(h.data_bytes, 48u);
  }
  EXPECT_EQ(
      parse(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4)).status().code(),
      Code::kUnsupported);
}

TEST(NpyTest, KeysInAnyOrderAndOldSpellings) {
  const NpyHeader h =
      parse(npy("{\"shape\": (5L,), \"fortran_order\": True, \"descr\": \">i2\"}")).value();
  EXPECT_EQ(h.dtype, DType::kI16);
  EXPECT_TRUE(h.big_endian && h.fortran_order);
  EXPECT_EQ(h.shape, std::vector<int64_t>{5});
  EXPECT_EQ(parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}")).value().dtype,
            DType::kU8);
}

TEST(NpyTest, WhatIsNoNumberIsRefusedByName) {
  const auto text = [](const std::string& descr) {
    const Status s =
        parse(npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': (2,), }")).status();
    EXPECT_EQ(s.code(), Code::kUnsupported) << s.text();
    return s.text();
  };
  EXPECT_NE(text("'|O'").find("Python objects"), std::string::npos);
  EXPECT_NE(text("[('a', '<i4')]").find("structures"), std::string::npos);
  EXPECT_NE(text("'<U7'").find("texts"), std::string::npos);
  EXPECT_NE(text("'<M8[ns]'").find("dates"), std::string::npos);
  EXPECT_NE(text("'<c8'").find("complex"), std::string::npos);
  EXPECT_NE(text("'<f16'").find("size"), std::string::npos);
}

TEST(NpyTest, DamagedHeadersAreCorrupt) {
  for (const char* dict :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
        "{'descr': '<f4', 'fortran_order': no, 'shape': (3,)}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} more",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}"})
    EXPECT_EQ(parse(npy(dict)).status().code(), Code::kCorrupt) << dict;
  // An empty axis makes an empty array, however large the others are.
  EXPECT_EQ(parse(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, "
                      "8)}"))
                .value()
                .data_bytes,
            0u);
}

TEST(NpyTest, CutAtEveryByteIsAnErrorUntilTheHeaderIsThere) {
  const std::string file =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", 2, 48);
  const uint64_t header = npy_header_bytes(as_bytes(file)).value();
  for (size_t n = 0; n < header; ++n)
    EXPECT_EQ(parse(file.substr(0, n)).status().code(), Code::kCorrupt) << n;
  EXPECT_TRUE(parse(file.substr(0, header)).ok());
}

TEST(NpyTest, FlippedBitsNeverCrash) {
  const std::string file = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  for (size_t i = 0; i < file.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      if (const auto h = parse(bad); h.ok()) EXPECT_LE(h.value().shape.size(), 3u);
    }
}

}  // namespace
}  // namespace headrace

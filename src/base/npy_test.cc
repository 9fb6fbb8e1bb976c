// SPDX-License-Identifier: Apache-2.0
#include "base/npy.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

std::string npy(std::string dict, size_t data, int version = 1) {
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
  return parse_npy(as_bytes(file), file.size());
}

const std::string kDict = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";

TEST(NpyTest, VersionsOneToThreeSayTheSame) {
  for (const int version : {1, 2, 3}) {
    const std::string file = npy(kDict, 48, version);
    const NpyHeader h = parse(file).value();
    EXPECT_EQ(h.type.dtype(), DType::kF32);
    EXPECT_FALSE(h.type.big_endian || h.fortran_order);
    EXPECT_EQ(h.shape, (std::vector<uint64_t>{3, 4}));
    EXPECT_EQ(h.data, file.size() - 48);
  }
  EXPECT_EQ(parse(npy(kDict, 48, 4)).status().code(), Code::kUnsupported);
}

TEST(NpyTest, KeysInAnyOrderAndOldSpellings) {
  const NpyHeader h =
      parse(npy("{\"shape\": (5L,), \"fortran_order\": True, \"descr\": \">i2\"}", 10)).value();
  EXPECT_EQ(h.type.dtype(), DType::kI16);
  EXPECT_TRUE(h.type.big_endian && h.fortran_order);
  EXPECT_EQ(
      parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", 1)).value().type.dtype(),
      DType::kU8);
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
    EXPECT_EQ(parse(npy(dict, 12)).status().code(), Code::kCorrupt) << dict;
}

TEST(NpyTest, CutAtEveryByteIsAnError) {
  const std::string file = npy(kDict, 48, 2);
  for (size_t n = 0; n < file.size(); ++n)
    EXPECT_EQ(parse(file.substr(0, n)).status().code(), Code::kCorrupt) << n;
  EXPECT_EQ(parse(file + "x").status().code(), Code::kCorrupt);
}

TEST(NpyTest, ItemsWithoutBytesAreNotMovedOneByOne) {
  const auto h =
      parse(npy("{'descr': '|V0', 'fortran_order': True, 'shape': (2147483647, 2147483647)}", 0));
  ASSERT_TRUE(h.ok()) << h.status().text();
  EXPECT_EQ(h.value().data_bytes(), 0u);
  EXPECT_TRUE(normalise_npy(h.value(), {}).ok());  // or it takes years
}

TEST(NpyTest, FlippedBitsNeverCrash) {
  const std::string file = npy(kDict, 48);
  for (size_t i = 0; i < 8 * file.size(); ++i) {
    std::string bad = file;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << i % 8));
    const auto h = parse(bad);
    if (h.ok()) {
      EXPECT_EQ(h.value().data_bytes(), bad.size() - h.value().data);
    }
  }
}

}  // namespace
}  // namespace headrace

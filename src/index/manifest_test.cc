// SPDX-License-Identifier: Apache-2.0
#include "index/manifest.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headrace {
namespace {

Manifest two_shards() {
  Manifest m;
  m.format = "tar";
  m.schema = {{"jpg", Kind::kJpeg, Storage::kExtent}, {"cls", Kind::kInt, Storage::kInline}};
  m.shards = {{.name = "train-0.tar",
               .bytes = 1000,
               .samples = 7,
               .part_bytes = 90,
               .part_checksum = 5,
               .blocks = 2,
               .block_bytes = 900},
              {.name = "train-1.tar",
               .samples = 3,
               .files = 3,
               .has_files = true,
               .file_names = {1, 2},
               .part_bytes = 80,
               .part_checksum = 6,
               .blocks = 1,
               .block_bytes = 300}};
  m.block_samples = {4, 3, 3};
  return m;
}

TEST(Manifest, reads_back_what_it_wrote) {
  const Manifest m = parse_manifest(encode_manifest(two_shards())).value();
  EXPECT_EQ(m.format, "tar");
  EXPECT_EQ(m.schema, two_shards().schema);
  ASSERT_EQ(m.shards.size(), 2u);
  EXPECT_EQ(m.shards[1].name, "train-1.tar");
  EXPECT_TRUE(m.shards[1].has_files);
  EXPECT_EQ(m.shards[1].file_names, (Hash128{1, 2}));
  EXPECT_EQ(m.shards[0].part_checksum, 5u);
  EXPECT_EQ(m.block_samples, two_shards().block_samples);
}

TEST(Manifest, every_cut_and_every_flip_is_an_error) {
  std::vector<std::byte> bytes = encode_manifest(two_shards());
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(parse_manifest(Bytes(bytes).first(n)).ok()) << n;
  for (std::byte& b : bytes) {
    b ^= std::byte{4};
    EXPECT_FALSE(parse_manifest(bytes).ok());
    b ^= std::byte{4};
  }
}

TEST(Manifest, blocks_that_do_not_add_up_are_an_error) {
  Manifest m = two_shards();
  m.block_samples = {4, 2, 4};
  EXPECT_EQ(parse_manifest(encode_manifest(m)).status().code(), Code::kCorrupt);
  m.block_samples = {4, 3, 3, 1};
  EXPECT_FALSE(parse_manifest(encode_manifest(m)).ok());
}

}  // namespace
}  // namespace headrace

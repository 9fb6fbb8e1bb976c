// SPDX-License-Identifier: Apache-2.0
//
// Files made by hand, with what FFCV would not write; those it writes are in tests/test_beton.py.

#include <gtest/gtest.h>

#include "format/beton/layout.h"
#include "open/test_data.h"

namespace headrace {
namespace {

using ByteVector = std::vector<std::byte>;

template <typename T>
void put(ByteVector& out, T value) {
  out.resize(out.size() + sizeof value);
  store_le(MutableBytes(out).subspan(out.size() - sizeof value), value);
}

struct File {
  std::vector<std::pair<BetonType, std::string>> fields;
  uint64_t samples = 1;
  ByteVector rows, pages, allocations;

  uint64_t pages_at() const {
    return kBetonHeader + fields.size() * kBetonDescriptor + rows.size();
  }
  ByteVector bytes() const {
    ByteVector out;
    put(out, uint16_t{2});
    put(out, static_cast<uint16_t>(fields.size()));
    put(out, uint32_t{1} << 21);
    put(out, samples);
    put(out, pages_at() + pages.size());
    for (const auto& [type, name] : fields) {
      const size_t at = out.size();
      out.resize(at + kBetonDescriptor);
      out[at] = static_cast<std::byte>(type);
      std::ranges::copy(as_bytes(name), out.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    for (const ByteVector* part : {&rows, &pages, &allocations})
      out.insert(out.end(), part->begin(), part->end());
    return out;
  }
};

Result<std::vector<TestSample>> read(const ByteVector& file) {
  auto store = std::make_shared<MemoryStore>();
  store->put("x.beton", file);
  HEADRACE_ASSIGN(const Opened opened,
                  open_source({"x.beton"}, {.store = store, .keep_sidecars = false, .threads = 1}));
  return read_samples(*opened.source);
}

// One picture of one pixel and its label; the row is 13 bytes, a gap of 3, and 8.
File one_picture(uint8_t mode, uint16_t width, uint16_t height, uint64_t bytes) {
  File file{.fields = {{BetonType::kImage, "image"}, {BetonType::kInt, "label"}}};
  file.rows.resize(24);
  const uint64_t at = file.pages_at();
  const MutableBytes row(file.rows);
  store_le(row, mode);
  store_le(row.subspan(1), width);
  store_le(row.subspan(3), height);
  store_le(row.subspan(5), at);
  store_le(row.subspan(16), int64_t{-7});
  file.pages.resize(bytes, std::byte{'p'});
  put(file.allocations, uint64_t{0});
  put(file.allocations, at);
  put(file.allocations, bytes);
  return file;
}

TEST(Beton, pictures_are_read_in_both_modes) {
  EXPECT_EQ(read(one_picture(0, 5, 5, 4).bytes()).value(),
            (std::vector<TestSample>{{"x/00000000", {{"image", "pppp"}, {"label", "-7"}}}}));
  const auto raw = read(one_picture(1, 2, 1, 6).bytes()).value();
  const std::string& npy = raw[0].fields.at("image");
  EXPECT_EQ(npy.size(), 128u + 6);
  EXPECT_EQ(npy.substr(0, 8), std::string("\x93NUMPY\x01\0", 8));
  EXPECT_NE(npy.find("'shape': (1, 2, 3)"), std::string::npos);
  EXPECT_TRUE(npy.ends_with("\npppppp"));
}

TEST(Beton, pictures_that_cannot_be_are_errors) {
  EXPECT_FALSE(read(one_picture(1, 3, 1, 6).bytes()).ok()) << "more pixels than the page has";
  EXPECT_FALSE(read(one_picture(1, 0, 1, 6).bytes()).ok()) << "no pixels";
  EXPECT_FALSE(read(one_picture(2, 2, 1, 6).bytes()).ok()) << "no such mode";
  File other = one_picture(0, 2, 1, 6);
  store_le(MutableBytes(other.allocations), uint64_t{1});
  const auto got = read(other.bytes());
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.status().text().find("no allocation says how long"), std::string::npos)
      << got.status().text();
}

TEST(Beton, any_flipped_bit_is_an_error_or_samples_and_any_cut_an_error) {
  ByteVector bytes = one_picture(0, 2, 1, 6).bytes();
  ASSERT_TRUE(read(bytes).ok());
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(read({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n)}).ok()) << n;
  for (size_t i = 0; i < 8 * bytes.size(); ++i) {
    bytes[i / 8] ^= std::byte{1} << (i % 8);
    (void)read(bytes).ok();
    bytes[i / 8] ^= std::byte{1} << (i % 8);
  }
}

TEST(Beton, is_told_by_its_bytes_and_other_bytes_are_not) {
  ByteVector bytes = one_picture(0, 2, 1, 6).bytes();
  EXPECT_TRUE(looks_like_beton(bytes));
  EXPECT_FALSE(looks_like_beton(Bytes(bytes).first(30)));
  bytes[kBetonHeader + 1] = std::byte{0};
  EXPECT_FALSE(looks_like_beton(bytes)) << "a field without a name";
}

}  // namespace
}  // namespace headrace

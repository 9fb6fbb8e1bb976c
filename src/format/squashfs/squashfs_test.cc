// SPDX-License-Identifier: Apache-2.0
//
// Images made by hand, with what no mksquashfs would write; those it writes are in
// tests/test_squashfs.py.

#include <gtest/gtest.h>

#include "format/squashfs/image.h"
#include "open/test_data.h"

namespace headrace {
namespace {

using ByteVector = std::vector<std::byte>;

template <typename T>
void put(ByteVector& out, T value) {
  out.resize(out.size() + sizeof value);
  store_le(MutableBytes(out).subspan(out.size() - sizeof value), value);
}
void put_text(ByteVector& out, std::string_view text) {
  const Bytes bytes = as_bytes(text);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

struct Entry {
  std::string name;
  uint16_t inode;  // where it lies in the table of inodes
  uint16_t type = 2;
};

// Tables of one plain block each.
struct Image {
  ByteVector data, inodes, listings;
  uint16_t root = 0;

  uint16_t add_file(uint32_t size, std::vector<uint32_t> words, uint32_t fragment = ~0u,
                    uint32_t at = kSquashSuperblock) {
    const auto place = static_cast<uint16_t>(inodes.size());
    put_head(2);
    put(inodes, at);
    put(inodes, fragment);
    put(inodes, uint32_t{0});
    put(inodes, size);
    for (const uint32_t word : words) put(inodes, word);
    return place;
  }
  // In runs, as long as they may be.
  struct Listing {
    uint16_t at, bytes;
  };
  Listing add_listing(const std::vector<Entry>& entries) {
    const size_t begin = listings.size();
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i % 256 == 0) {
        put(listings, static_cast<uint32_t>(std::min<size_t>(entries.size() - i, 256) - 1));
        put(listings, uint32_t{0});
        put(listings, uint32_t{1});
      }
      put(listings, entries[i].inode);
      put(listings, uint16_t{0});
      put(listings, entries[i].type);
      put(listings, static_cast<uint16_t>(entries[i].name.size() - 1));
      put_text(listings, entries[i].name);
    }
    return {static_cast<uint16_t>(begin), static_cast<uint16_t>(listings.size() - begin)};
  }
  uint16_t add_folder(const Listing& listing) {
    const auto place = static_cast<uint16_t>(inodes.size());
    put_head(1);
    put(inodes, uint32_t{0});
    put(inodes, uint32_t{2});
    put(inodes, static_cast<uint16_t>(listing.bytes + 3));
    put(inodes, listing.at);
    put(inodes, uint32_t{1});
    return place;
  }
  uint16_t add_folder(const std::vector<Entry>& entries) {
    return add_folder(add_listing(entries));
  }
  ByteVector bytes() const {
    ByteVector out(kSquashSuperblock);
    out.insert(out.end(), data.begin(), data.end());
    const uint64_t inodes_at = out.size();
    put(out, static_cast<uint16_t>(inodes.size() | 0x8000u));
    out.insert(out.end(), inodes.begin(), inodes.end());
    const uint64_t folders_at = out.size();
    put(out, static_cast<uint16_t>(listings.size() | 0x8000u));
    out.insert(out.end(), listings.begin(), listings.end());
    const MutableBytes head(out);
    store_le(head, 0x73717368u);
    store_le(head.subspan(12), uint32_t{4096});
    store_le(head.subspan(20), uint16_t{1});
    store_le(head.subspan(22), uint16_t{12});
    store_le(head.subspan(28), uint16_t{4});
    store_le(head.subspan(32), uint64_t{root});
    store_le(head.subspan(40), uint64_t{out.size()});
    store_le(head.subspan(64), inodes_at);
    store_le(head.subspan(72), folders_at);
    store_le(head.subspan(80), ~uint64_t{0});
    return out;
  }

 private:
  void put_head(uint16_t type) {
    put(inodes, type);
    for (int i = 0; i < 7; ++i) put(inodes, uint16_t{0});
  }
};

Result<std::vector<TestSample>> read(const ByteVector& image) {
  auto store = std::make_shared<MemoryStore>();
  store->put("x.sqfs", image);
  HEADRACE_ASSIGN(const Opened opened,
                  open_source({"x.sqfs"}, {.store = store, .keep_sidecars = false, .threads = 1}));
  return read_samples(*opened.source);
}
std::string error_of(const Image& image) {
  const auto got = read(image.bytes());
  return got.ok() ? "no error" : got.status().text();
}
bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Squashfs, plain_blocks_that_touch_are_one_extent_and_holes_are_zeros) {
  Image image;
  put_text(image.data, std::string(4096, 'a') + std::string(4096, 'b') + "end");
  const uint16_t whole =
      image.add_file(2 * 4096 + 3, {4096 | 1u << 24, 4096 | 1u << 24, 3 | 1u << 24});
  const uint16_t hole = image.add_file(4096 + 5, {0, 0});
  image.root =
      image.add_folder({{"a.bin", whole}, {"b.bin", hole}, {"c.bin", image.add_file(0, {})}});
  auto store = std::make_shared<MemoryStore>();
  store->put("x.sqfs", image.bytes());
  const auto opened =
      open_source({"x.sqfs"}, {.store = store, .keep_sidecars = false, .threads = 1}).value();
  EXPECT_EQ(opened.format, "squashfs");
  Request request;
  const uint32_t field = 0;
  ASSERT_TRUE(opened.source->needs({.sample = 0, .fields = {&field, 1}}, request).ok());
  ASSERT_EQ(request.units.size(), 1u);
  EXPECT_EQ(request.units[0].encoding, 0u);
  EXPECT_EQ(request.units[0].stored_bytes, 2 * 4096u + 3);
  ASSERT_TRUE(opened.source->needs({.sample = 1, .fields = {&field, 1}}, request).ok());
  ASSERT_EQ(request.units.size(), 1u) << "both holes are the same unit";
  ASSERT_EQ(request.pieces.size(), 2u);
  EXPECT_EQ(request.pieces[1].length, 5u);
  EXPECT_TRUE(request.pieces[1].continues);
  Buffer zeros;
  ASSERT_TRUE(opened.source->decode_unit(request.units[0], {}, zeros).ok());
  EXPECT_EQ(as_text(zeros.bytes()), std::string(4096, '\0'));
  EXPECT_EQ(read_sample(*opened.source, 2).value().fields.at("bin"), "");
}

TEST(Squashfs, a_loop_of_folders_is_an_error) {
  Image image;
  const uint16_t file = image.add_file(0, {});
  // A folder's inode is 32 bytes: the next one is known before it is there.
  const auto self = static_cast<uint16_t>(image.inodes.size());
  image.root = image.add_folder({{"a", self, 1}, {"b", self, 1}, {"c.bin", file}});
  ASSERT_EQ(image.root, self);
  EXPECT_TRUE(says(error_of(image), "one above it")) << error_of(image);
}

TEST(Squashfs, many_folders_with_the_same_long_listing_are_bounded) {
  Image image;
  const uint16_t file = image.add_file(0, {});
  std::vector<Entry> files, folders;
  for (int i = 0; i < 500; ++i)
    files.push_back(
        {std::string(1, static_cast<char>('a' + i / 25)) + static_cast<char>('a' + i % 25) + ".x",
         file});
  const Image::Listing shared = image.add_listing(files);
  for (int i = 0; i < 180; ++i)
    folders.push_back({std::to_string(100 + i), image.add_folder(shared), 1});
  image.root = image.add_folder(folders);
  EXPECT_TRUE(says(error_of(image), "more entries of folders than an image of")) << error_of(image);
}

TEST(Squashfs, pointers_that_leave_the_image_are_errors) {
  const auto with_file = [](uint32_t size, std::vector<uint32_t> words, uint32_t fragment = ~0u,
                            uint32_t at = kSquashSuperblock) {
    Image image;
    const uint16_t file = image.add_file(size, std::move(words), fragment, at);
    image.root = image.add_folder({{"a.bin", file}});
    return error_of(image);
  };
  EXPECT_TRUE(says(with_file(10, {10 | 1u << 24}, ~0u, 0xfffffff0u), "a.bin: block 0 would have"));
  EXPECT_TRUE(says(with_file(10, {9 | 1u << 24}), "block 0 would have 9")) << "plain, too short";
  EXPECT_TRUE(says(with_file(10, {5000}), "block 0 would have 5000")) << "longer than a block";
  EXPECT_TRUE(says(with_file(10, {1u << 25}), "block 0")) << "bits that mean nothing";
  EXPECT_TRUE(says(with_file(10, {}, 0), "fragment 0 of 0"));
  EXPECT_TRUE(says(with_file(0xffffffffu, {}), "a.bin")) << "a million blocks that are not there";
  Image image;
  image.root = 9000;
  put(image.listings, uint64_t{0});
  put(image.inodes, uint64_t{0});
  EXPECT_TRUE(says(error_of(image), "past the end of its block")) << error_of(image);
}

TEST(Squashfs, names_that_are_none_or_twice_are_errors) {
  for (const std::string& name : {std::string("."), std::string(".."), std::string("a/b.bin"),
                                  std::string("a\0.bin", 6), std::string(257, 'n')}) {
    Image image;
    const uint16_t file = image.add_file(0, {});
    image.root = image.add_folder({{name, file}});
    EXPECT_TRUE(says(error_of(image), "name")) << error_of(image);
  }
  Image image;
  const uint16_t file = image.add_file(0, {});
  image.root = image.add_folder({{"a.bin", file}, {"a.bin", file}});
  EXPECT_TRUE(says(error_of(image), "'a.bin' is there twice"));
}

TEST(Squashfs, any_flipped_bit_and_any_cut_is_an_error_or_samples) {
  Image image;
  put_text(image.data, "some data");
  const uint16_t file = image.add_file(9, {9 | 1u << 24});
  const uint16_t inner = image.add_folder({{"x.bin", file}});
  image.root = image.add_folder({{"class", inner, 1}, {"y.bin", file}});
  ByteVector bytes = image.bytes();
  ASSERT_EQ(read(bytes).value(),
            (std::vector<TestSample>{{"class/x", {{"cls", "0"}, {"bin", "some data"}}}}));
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(read({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n)}).ok()) << n;
  for (size_t i = 0; i < 8 * bytes.size(); ++i) {
    bytes[i / 8] ^= std::byte{1} << (i % 8);
    (void)read(bytes).ok();
    bytes[i / 8] ^= std::byte{1} << (i % 8);
  }
}

TEST(Squashfs, units_open_only_to_what_was_indexed) {
  const Format& format = *find_format("squashfs").value();
  Buffer out;
  const auto open = [&](Unit unit, std::string_view stored) {
    return format.decode_unit(MemoryStore(), "x", unit, as_bytes(stored), out);
  };
  EXPECT_EQ(open({.encoding = 1, .decoded_bytes = 1u << 21}, "").code(), Code::kCorrupt);
  for (const uint32_t packing : {1u, 4u, 5u, 6u})
    EXPECT_EQ(open({.encoding = packing, .decoded_bytes = 100}, "no such data").code(),
              Code::kCorrupt)
        << packing;
  EXPECT_EQ(open({.encoding = 3, .decoded_bytes = 100}, "").code(), Code::kUnsupported);
  // "\0" in lz4: a block of one literal; less than the file has there.
  EXPECT_EQ(open({.encoding = 5, .decoded_bytes = 100}, std::string_view("\x10x", 2)).code(),
            Code::kCorrupt);
  ASSERT_TRUE(
      open({.encoding = 5 | kSquashFragment, .decoded_bytes = 100}, std::string_view("\x10x", 2))
          .ok());
  EXPECT_EQ(as_text(out.bytes()), "x");
}

}  // namespace
}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/inflate.h"
#include "base/zstd.h"
#include "format/file_bytes.h"
#include "format/tar/header.h"
#include "open/test_data.h"

namespace headrace {
namespace {

std::string header(std::string_view name, uint64_t size, char type = '0') {
  std::array<std::byte, kTarBlock> block;
  EXPECT_TRUE(make_tar_header(name, size, type, block));
  return std::string(as_text(block));
}
std::string padded(std::string text) {
  text.resize(tar_padded(text.size()), '\0');
  return text;
}
std::string member(std::string_view name, std::string_view data, char type = '0') {
  return header(name, data.size(), type) + padded(std::string(data));
}
std::string zeros(size_t blocks) {
  return std::string(blocks * kTarBlock, '\0');
}

// Writes the checksum anew after a header was changed by hand.
std::string resummed(std::string block) {
  block.replace(148, 8, 8, ' ');
  uint64_t sum = 0;
  for (const char c : block.substr(0, kTarBlock)) sum += static_cast<unsigned char>(c);
  return block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

Result<Opened> open_tar(const std::string& bytes) {
  auto store = std::make_shared<MemoryStore>();
  store->put("dir/x.tar", bytes);
  return open_source({"dir/x.tar"}, {.store = store, .format = "tar", .keep_sidecars = false});
}
std::vector<TestSample> read_tar(const std::string& bytes) {
  const auto opened = open_tar(bytes);
  if (!opened.ok()) ADD_FAILURE() << opened.status().text();
  return opened.ok() ? read_samples(*opened.value().source).value() : std::vector<TestSample>();
}
bool says(const Status& status, std::string_view part) {
  return status.text().find(part) != std::string::npos;
}

TEST(Tar, members_with_equal_key_are_a_sample) {
  const auto got = read_tar(member("d/", "", '5') + member("d/a.JPG", "x") +
                            member("d/a.seg.png", "y") + member("e.f/a.cls", "1") + zeros(2));
  EXPECT_EQ(got, (std::vector<TestSample>{{"d/a", {{"jpg", "x"}, {"seg.png", "y"}}},
                                          {"e.f/a", {{"cls", "1"}}}}));
}

TEST(Tar, jpeg_stays_as_written_but_for_its_case) {
  EXPECT_EQ(read_tar(member("a.JPEG", "x") + zeros(2))[0].fields.count("jpeg"), 1u);
}

TEST(Tar, a_shard_with_an_end_mark_and_no_member_counts_nothing) {
  auto store = std::make_shared<MemoryStore>();
  store->put("d/0.tar", zeros(2));
  store->put("d/1.tar", member("a.cls", "1") + zeros(2));
  const auto opened =
      open_source({"d/{0,1}.tar"}, {.store = store, .keep_sidecars = false}).value();
  EXPECT_EQ(opened.source->size(), 1u);
  EXPECT_EQ(opened.source->shards().samples(0), 0u);
}

TEST(Tar, no_sample_at_all_is_an_error) {
  EXPECT_EQ(open_tar(zeros(2)).status().code(), Code::kCorrupt);
  const Status s = open_tar(member("README", "x") + zeros(2)).status();
  EXPECT_TRUE(says(s, "no sample")) << s.text();
  EXPECT_TRUE(says(s, "README")) << s.text();
}

TEST(Tar, an_empty_file_is_an_error) {
  const Status s = open_tar("").status();
  EXPECT_EQ(s.code(), Code::kCorrupt);
  EXPECT_TRUE(says(s, "dir/x.tar")) << s.text();
}

TEST(Tar, damage_names_shard_offset_and_last_good_sample) {
  const std::string good = member("a.cls", "1") + member("b.cls", "2");
  const Status cut = open_tar(good + header("c.cls", 600) + "short").status();
  EXPECT_EQ(cut.code(), Code::kCorrupt);
  EXPECT_EQ(cut.place().file, "dir/x.tar");
  EXPECT_EQ(cut.place().offset, 2048);
  EXPECT_TRUE(says(cut, "'c.cls' is cut short: 600 bytes are wanted, 5 are there")) << cut.text();
  EXPECT_TRUE(says(cut, "last good sample is 'b', number 1")) << cut.text();

  std::string broken = good + member("c.cls", "3") + zeros(2);
  broken[2048 + 3] ^= 1;
  const Status bad = open_tar(broken).status();
  EXPECT_TRUE(says(bad, "offset 2048") && says(bad, "checksum") && says(bad, "'b'")) << bad.text();

  const Status open_end = open_tar(good).status();
  EXPECT_TRUE(says(open_end, "without an end mark") && says(open_end, "'b'")) << open_end.text();
}

TEST(Tar, half_an_end_mark_or_data_after_it_is_an_error) {
  const std::string one = member("a.cls", "1");
  EXPECT_TRUE(says(open_tar(one + zeros(1)).status(), "without an end mark"));
  EXPECT_TRUE(says(open_tar(one + zeros(1) + member("b.cls", "2") + zeros(2)).status(),
                   "half an end mark"));
  EXPECT_TRUE(says(open_tar(one + zeros(2) + member("b.cls", "2") + zeros(2)).status(),
                   "after the end mark"));
  EXPECT_EQ(read_tar(one + zeros(20)).size(), 1u);
}

TEST(Tar, a_key_that_comes_again_names_both_offsets) {
  const Status s =
      open_tar(member("a.cls", "1") + member("b.cls", "2") + member("a.jpg", "3") + zeros(2))
          .status();
  EXPECT_EQ(s.code(), Code::kCorrupt);
  EXPECT_TRUE(says(s, "offset 2048") && says(s, "offset 0")) << s.text();
}

TEST(Tar, an_extension_twice_names_both_offsets) {
  const Status s = open_tar(member("a.cls", "1") + member("a.CLS", "2") + zeros(2)).status();
  EXPECT_TRUE(says(s, "offset 1024") && says(s, "offset 0") && says(s, "twice")) << s.text();
}

TEST(Tar, gnu_long_names_and_links_are_followed_and_skipped) {
  const std::string name = std::string(300, 'n') + ".jpg";
  const auto got = read_tar(member("././@LongLink", name + '\0', 'L') + member("short", "x") +
                            member("././@LongLink", std::string(200, 'k') + '\0', 'K') +
                            header("link.jpg", 0, '2') + member("z.cls", "1") + zeros(2));
  EXPECT_EQ(got, (std::vector<TestSample>{{std::string(300, 'n'), {{"jpg", "x"}}},
                                          {"z", {{"cls", "1"}}}}));
}

TEST(Tar, pax_overrides_name_and_size) {
  const std::string pax = pax_record("path", "\xc3\xbc/long.jpg") + pax_record("size", "3") +
                          pax_record("mtime", "1.5");
  const auto got = read_tar(member("PaxHeader", pax, 'x') + header("other", 0) + padded("abc") +
                            member("b.cls", "1") + zeros(2));
  EXPECT_EQ(got,
            (std::vector<TestSample>{{"\xc3\xbc/long", {{"jpg", "abc"}}}, {"b", {{"cls", "1"}}}}));
}

TEST(Tar, a_damaged_pax_record_is_an_error) {
  for (const char* bad :
       {"99 path=x\n", "x\n", "8 path=x", "0 a=b\n", "12 size=abcd\n", "7 noeq\n"}) {
    const Status s =
        open_tar(member("PaxHeader", bad, 'x') + member("a.cls", "1") + zeros(2)).status();
    EXPECT_EQ(s.code(), Code::kCorrupt) << bad;
  }
}

TEST(Tar, sparse_members_are_refused_by_name) {
  const Status gnu = open_tar(member("a.cls", "1", 'S') + zeros(2)).status();
  EXPECT_EQ(gnu.code(), Code::kUnsupported);
  EXPECT_TRUE(says(gnu, "'a.cls'") && says(gnu, "sparse")) << gnu.text();
  const Status pax = open_tar(member("p", pax_record("GNU.sparse.major", "1"), 'x') +
                              member("a.cls", "1") + zeros(2))
                         .status();
  EXPECT_EQ(pax.code(), Code::kUnsupported);
}

TEST(Tar, base_256_sizes_are_read_and_never_trusted) {
  std::string small = member("a.cls", "123");
  small.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12));
  EXPECT_EQ(read_tar(resummed(small) + zeros(2))[0].fields.at("cls"), "123");
  std::string huge = member("a.cls", "123");
  huge.replace(124, 12, std::string("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12));
  EXPECT_TRUE(says(open_tar(resummed(huge) + zeros(2)).status(), "cut short"));
  huge.replace(124, 12, std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12));
  EXPECT_TRUE(says(open_tar(resummed(huge) + zeros(2)).status(), "no size"));
}

TEST(Tar, members_that_are_no_samples_are_told_of) {
  const auto opened =
      open_tar(member("README", "x") + member(".hidden.jpg", "x") + member("a.cls", "1") + zeros(2))
          .value();
  EXPECT_EQ(opened.source->size(), 1u);
  ASSERT_EQ(opened.notices.size(), 1u);
  EXPECT_NE(opened.notices[0].find("2 members"), std::string::npos);
  EXPECT_NE(opened.notices[0].find("README"), std::string::npos);
}

TEST(Tar, large_and_small_members_are_walked_alike) {
  std::vector<TestSample> wanted;
  for (int i = 0; i < 60; ++i)
    wanted.push_back(
        {"k" + std::to_string(i),
         {{"bin", std::string(static_cast<size_t>(i % 7 * i * 1000), 'z')}, {"cls", "1"}}});
  EXPECT_EQ(read_tar(write_tar(wanted)), wanted);
}

std::string gzipped(const std::string& plain) {
  Buffer out;
  EXPECT_TRUE(deflate_whole(as_bytes(plain), DeflateWrap::kGzip, 6, out).ok());
  return std::string(as_text(out.bytes()));
}
std::string in_zstd(const std::string& plain) {
  Buffer out;
  EXPECT_TRUE(pack_zstd(as_bytes(plain), 3, out).ok());
  return std::string(as_text(out.bytes()));
}

// With members larger and smaller than what is unpacked at a time.
std::vector<TestSample> mixed_sizes() {
  std::vector<TestSample> wanted = numbered_samples(200);
  for (size_t i = 0; i < 3; ++i)
    wanted.push_back({"large" + std::to_string(i), {{"bin", std::string(300'000 * i, 'z')}}});
  return wanted;
}

TEST(PackedTar, gives_what_the_plain_tar_gives) {
  const std::vector<TestSample> wanted = mixed_sizes();
  const std::string plain = write_tar(wanted);
  EXPECT_EQ(read_tar(gzipped(plain)), wanted);
  EXPECT_EQ(read_tar(in_zstd(plain)), wanted);
  // Members and frames one after the other, as pigz and zstd -T write them: what the last one
  // states is not the size of all.
  const size_t half = plain.size() / 2;
  EXPECT_EQ(read_tar(gzipped(plain.substr(0, half)) + gzipped(plain.substr(half))), wanted);
  EXPECT_EQ(read_tar(in_zstd(plain.substr(0, half)) + in_zstd(plain.substr(half))), wanted);
}

TEST(PackedTar, is_one_unit_and_one_block) {
  const auto opened = open_tar(gzipped(write_tar(numbered_samples(300)))).value();
  EXPECT_EQ(opened.source->blocks().samples.size(), 1u);
  Request request;
  const uint32_t field = 0;
  ASSERT_TRUE(opened.source->needs({.sample = 7, .fields = {&field, 1}}, request).ok());
  ASSERT_EQ(request.units.size(), 1u);
  EXPECT_EQ(request.units[0].decoded_bytes, write_tar(numbered_samples(300)).size());
}

TEST(PackedTar, gzip_is_known_by_its_bytes_and_others_by_their_names) {
  const std::string plain = write_tar(numbered_samples(3));
  const std::string gzip = gzipped(write_tar(mixed_sizes()));
  ASSERT_GT(gzip.size(), 200u);
  EXPECT_EQ(guess_format(as_bytes(gzip).first(200), "no_suffix").value()->name, "tar");
  for (const std::string name : {"x.tar.zst", "x.TAR.ZST", "x.tzst", "x.tar.xz", "x.txz", "x.tgz"})
    EXPECT_EQ(guess_format(as_bytes(in_zstd(plain)), name).value()->name, "tar") << name;
}

TEST(PackedTar, a_cut_at_any_byte_is_an_error) {
  for (const std::string& whole :
       {gzipped(write_tar(numbered_samples(3))), in_zstd(write_tar(numbered_samples(3)))})
    for (size_t n = 0; n < whole.size(); ++n) {
      const auto opened = open_tar(whole.substr(0, n));
      ASSERT_FALSE(opened.ok()) << "cut at " << n;
      EXPECT_EQ(opened.status().code(), Code::kCorrupt) << "cut at " << n;
      EXPECT_EQ(opened.status().place().file, "dir/x.tar") << "cut at " << n;
    }
}

TEST(PackedTar, a_flipped_bit_in_gzip_is_an_error_or_changes_nothing) {
  const std::vector<TestSample> wanted = numbered_samples(3);
  std::string bytes = gzipped(write_tar(wanted));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(bytes[i] ^ 4);
    const auto opened = open_tar(bytes);
    if (opened.ok()) {
      EXPECT_EQ(read_samples(*opened.value().source).value(), wanted) << i;
    }
    bytes[i] = static_cast<char>(bytes[i] ^ 4);
  }
}

TEST(PackedTar, errors_say_that_offsets_are_of_the_unpacked_data) {
  const std::string good = member("a.cls", "1");
  const auto fails = [](const std::string& plain, std::string_view what) {
    for (const std::string& packed : {gzipped(plain), in_zstd(plain)}) {
      const Status s = open_tar(packed).status();
      EXPECT_EQ(s.code(), Code::kCorrupt);
      EXPECT_EQ(s.place().offset, -1) << s.text();
      EXPECT_TRUE(says(s, what)) << s.text();
      EXPECT_TRUE(says(s, "of the unpacked data")) << s.text();
      EXPECT_TRUE(says(s, "dir/x.tar")) << s.text();
    }
  };
  fails(good, "ends without an end mark (offset 1024");
  fails(good + zeros(1), "ends without an end mark (offset 1024");
  fails(good + header("b.jpg", 5000) + "short", "'b.jpg' is cut short: 5000 bytes are wanted, 5");
  fails(good + zeros(2) + good + zeros(2), "data after the end mark");
  fails(good + member("b.cls", "1") + member("a.jpg", "x") + zeros(2), "the key of 'a.jpg'");
  fails(good + header("x", 400, 'x'), "'x' is cut short: 400 bytes are wanted, 0");
}

TEST(PackedTar, what_memory_cannot_hold_names_the_command) {
  const Status s = check_unit_fits(uint64_t{1} << 50, Compression::kZstd, "d/x.tar.zst");
  EXPECT_EQ(s.code(), Code::kUnsupported);
  EXPECT_TRUE(says(s, "1048576.0 GiB") && says(s, "zstd -dk 'd/x.tar.zst'")) << s.text();
  EXPECT_TRUE(check_unit_fits(1000, Compression::kZstd, "d/x.tar.zst").ok());
  EXPECT_NE(large_unit_notice(uint64_t{3} << 30, Compression::kGzip).find("3.0 GiB"),
            std::string::npos);
  EXPECT_EQ(large_unit_notice(1000, Compression::kGzip), "");
}

TEST(PackedTar, an_end_mark_alone_counts_nothing) {
  auto store = std::make_shared<MemoryStore>();
  store->put("d/0.tar.gz", gzipped(zeros(20)));
  store->put("d/1.tar.gz", gzipped(member("a.cls", "1") + zeros(2)));
  const auto opened = open_source({"d/"}, {.store = store, .keep_sidecars = false}).value();
  EXPECT_EQ(opened.source->size(), 1u);
  EXPECT_EQ(open_tar(gzipped(zeros(2))).status().code(), Code::kCorrupt);
}

TEST(TarWriter, long_names_go_through_prefix_and_pax) {
  std::vector<TestSample> wanted = {
      {std::string(90, 'd') + "/" + std::string(90, 'f'), {{"jpg", "x"}}},
      {std::string(300, 'g'), {{"jpg", "y"}}},
      {std::string(98, 'h'), {{"j", "exactly 100"}}},
      {"\xe2\x82\xac/" + std::string(260, 'i'), {{"jpg", "z"}}}};
  EXPECT_EQ(read_tar(write_tar(wanted)), wanted);
}

TEST(TarWriter, inline_numbers_become_digits) {
  std::vector<std::byte> out;
  auto writer = find_format("tar").value()->create({.file = memory_sink(out)}).value();
  const int64_t label = -42;
  const double score = 0.1;
  const RecordValue values[] = {
      {"cls", Kind::kInt, Storage::kInline, std::as_bytes(std::span(&label, 1))},
      {"score", Kind::kFloat, Storage::kInline, std::as_bytes(std::span(&score, 1))}};
  ASSERT_TRUE(writer->append({"k", values}).ok());
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(read_tar(std::string(as_text(out)))[0].fields,
            (std::map<std::string, std::string>{{"cls", "-42"}, {"score", "0.1"}}));
}

TEST(TarWriter, keys_keep_their_dots) {
  const std::vector<TestSample> samples = {{"a.b/cat.0", {{"jpg", "0"}}},
                                           {"a.b/cat%2E1", {{"jpg", "1"}}}};
  auto store = std::make_shared<MemoryStore>();
  store->put("x.tar", write_tar(samples));
  const auto opened = open_source({"x.tar"}, {.store = store, .keep_sidecars = false}).value();
  EXPECT_EQ(read_samples(*opened.source).value(), samples);
}

TEST(TarWriter, what_a_tar_cannot_hold_is_refused) {
  std::vector<std::byte> out;
  auto writer = find_format("tar").value()->create({.file = memory_sink(out)}).value();
  const RecordValue twice[] = {{"jpg", Kind::kJpeg, Storage::kExtent, {}},
                               {"jpg", Kind::kJpeg, Storage::kExtent, {}}};
  EXPECT_EQ(writer->append({"k", twice}).code(), Code::kUnsupported);
  EXPECT_EQ(writer->append({"", {}}).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/inflate.h"
#include "base/npy.h"
#include "format/npz/names.h"
#include "format/pickle/numpy.h"
#include "format/zip/writer.h"
#include "format/zip/zip.h"
#include "open/test_data.h"

namespace headrace {
namespace {

using namespace std::string_literals;

std::string npy(std::string_view dict, std::string_view data, char version = 1) {
  std::string text(dict);
  text += '\n';
  std::string out = std::string(kNpyMagic) + version + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    out += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return out + text + std::string(data);
}

Result<NpyHeader> parse(const std::string& bytes) {
  return parse_npy(as_bytes(bytes), bytes.size());
}

constexpr std::string_view kTwoByThree =
    "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }";

TEST(NpyHeader, every_version_and_the_long_of_python_2) {
  for (const char version : {'\1', '\2', '\3'}) {
    const NpyHeader h = parse(npy(kTwoByThree, std::string(12, 'x'), version)).value();
    EXPECT_EQ(h.shape, (std::vector<uint64_t>{2, 3}));
    EXPECT_EQ(h.type.dtype(), DType::kU16);
    EXPECT_EQ(h.row_bytes(), 6u);
  }
  const NpyHeader old =
      parse(npy("{'shape': (2L,), 'descr': \"|S3\", 'fortran_order': True}", "abcdef")).value();
  EXPECT_TRUE(old.type.is_text() && old.fortran_order && old.shape[0] == 2);
}

TEST(NpyHeader, what_we_write_is_read_back_and_aligned) {
  for (const std::vector<uint64_t>& shape :
       {std::vector<uint64_t>{}, {7}, {2, 3}, {0, 5}, {1, 2, 3, 4}}) {
    const std::string header = make_npy_header(DType::kF32, shape);
    EXPECT_EQ(header.size() % 64, 0u);
    const std::string all = header + std::string(*count_items(shape, 4) * 4, '\0');
    const NpyHeader back = parse(all).value();
    EXPECT_EQ(back.shape, shape);
    EXPECT_EQ(back.type.dtype(), DType::kF32);
  }
}

TEST(NpyHeader, lies_and_types_that_are_not_read_are_errors) {
  const auto code = [](const std::string& bytes) { return parse(bytes).status().code(); };
  EXPECT_EQ(code(npy(kTwoByThree, std::string(11, 'x'))), Code::kCorrupt);
  EXPECT_EQ(code(npy("{'descr': '<u2', 'fortran_order': False}", "")), Code::kCorrupt);
  EXPECT_EQ(code(npy("{'descr': '<u2', 'fortran_order': 3, 'shape': ()}", "xx")), Code::kCorrupt);
  EXPECT_EQ(code(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (-1,)}", "")),
            Code::kCorrupt);
  EXPECT_EQ(code(npy("{'descr': '<u2', 'fortran_order': False, "
                     "'shape': (9223372036854775807, 9223372036854775807, 0)}",
                     "")),
            Code::kCorrupt);
  EXPECT_EQ(code(npy("{'descr': '|O', 'fortran_order': False, 'shape': ()}", "x")),
            Code::kUnsupported);
  EXPECT_EQ(code(npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': ()}", "xxxx")),
            Code::kUnsupported);
  const std::string good = npy(kTwoByThree, std::string(12, 'x'));
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(parse(good.substr(0, n)).ok()) << n;
}

TEST(NpyHeader, any_order_becomes_little_endian_last_axis_fastest) {
  const NpyHeader h =
      parse(npy("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3)}", std::string(12, 0)))
          .value();
  std::string data = "\0\1\0\4\0\2\0\5\0\3\0\6"s;  // 1 2 3 / 4 5 6, columns first
  ASSERT_TRUE(normalise_npy(h, std::as_writable_bytes(std::span(data))).ok());
  EXPECT_EQ(data, "\1\0\2\0\3\0\4\0\5\0\6\0"s);
}

TEST(NpzNames, fields_of_any_name_come_back) {
  for (const std::string field : {"jpg", "image/encoded", "100%", "a[0]", "seg.npy", "%2F"}) {
    const std::string name = "the/key/" + npz_field_name(field);
    EXPECT_FALSE(name.ends_with(".npy"));
    EXPECT_EQ(split_npz_name(name).key, "the/key");
    EXPECT_EQ(split_npz_name(name).field, field);
    EXPECT_EQ(split_npz_name(name + "[12]").field, field);
  }
}

struct Zip {
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  ShardInput input;
  ZipFile file;
  explicit Zip(const std::string& bytes) : input{put(bytes), {}}, file(input) {
    input.info = store->stat("z").value();
  }
  const Store& put(const std::string& bytes) {
    store->put("z", bytes);
    return *store;
  }
};

std::string zip_of_two() {
  std::vector<std::byte> out;
  ZipWriter writer(memory_sink(out));
  const Bytes hello = as_bytes("hello");
  EXPECT_TRUE(writer.add("a", Kind::kText, std::span(&hello, 1)).ok());
  EXPECT_TRUE(writer.add("b/\xc3\xbc", Kind::kBytes, {}).ok());
  EXPECT_TRUE(writer.finish().ok());
  return std::string(as_text(out));
}

TEST(Zip, members_are_found_and_checked) {
  Zip zip(zip_of_two());
  std::vector<ZipMember> members = zip.file.members().value();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[1].name, "b/\xc3\xbc");
  ASSERT_TRUE(zip.file.locate(members[0]).ok());
  Buffer contents;
  ASSERT_TRUE(zip.file.contents(members[0], contents).ok());
  EXPECT_EQ(as_text(contents.bytes()), "hello");
  EXPECT_EQ(members[0].kind, static_cast<uint16_t>(Kind::kText));
}

TEST(Zip, a_changed_byte_of_a_member_shows_by_its_checksum) {
  std::string bytes = zip_of_two();
  bytes[bytes.find("hello")] = 'H';
  Zip zip(bytes);
  std::vector<ZipMember> members = zip.file.members().value();
  ASSERT_TRUE(zip.file.locate(members[0]).ok());
  Buffer contents;
  EXPECT_EQ(zip.file.contents(members[0], contents).code(), Code::kCorrupt);
}

TEST(Inflate, a_stream_gives_exactly_what_it_should) {
  const std::string deflated = "\xcb\x48\xcd\xc9\xc9\x07\x00"s;  // "hello"
  Buffer out;
  uint64_t used = 0;
  const Status status = inflate_raw(as_bytes(deflated + "more"), 5, out, &used);
  if (status.code() == Code::kUnsupported) GTEST_SKIP() << status.text();
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(as_text(out.bytes()), "hello");
  EXPECT_EQ(used, deflated.size());
  EXPECT_EQ(crc32(as_bytes("lo"), crc32(as_bytes("hel"))), 0x3610a686u);
  EXPECT_EQ(inflate_raw(as_bytes(deflated), 4, out).code(), Code::kCorrupt);
  EXPECT_EQ(inflate_raw(as_bytes(deflated), 6, out).code(), Code::kCorrupt);
  EXPECT_EQ(inflate_raw(as_bytes(deflated), uint64_t{1} << 50, out).code(), Code::kCorrupt);
}

TEST(Npz, several_values_and_samples_without_any_come_back) {
  const Format& format = *find_format("npz").value();
  std::vector<std::byte> out;
  auto writer = format
                    .create({.file = memory_sink(out),
                             .schema = {{.name = "box",
                                         .kind = Kind::kArray,
                                         .dtype = DType::kF32,
                                         .shape = {kVaries, 2},
                                         .many = true},
                                        {.name = "n", .kind = Kind::kInt, .many = true}},
                             .samples = 2})
                    .value();
  const std::string four(16, 'f');
  const std::vector<RecordValue> values = {
      {"box", Kind::kArray, Storage::kExtent, as_bytes(four)},
      {"box", Kind::kArray, Storage::kExtent, as_bytes(std::string_view(four).substr(8))},
      {"n", Kind::kInt, Storage::kExtent, as_bytes("7")},
      {"n", Kind::kInt, Storage::kExtent, as_bytes("-8")}};
  ASSERT_TRUE(writer->append({"k", values}).ok());
  ASSERT_TRUE(writer->append({"empty", {}}).ok());
  EXPECT_EQ(writer->append({"k", {}}).code(), Code::kUnsupported);
  ASSERT_TRUE(writer->finish().ok());
  auto store = std::make_shared<MemoryStore>();
  store->put("shard", out);
  const Opened opened = open_source({"shard"}, {.store = store, .keep_sidecars = false}).value();
  const auto samples = read_samples(*opened.source).value();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].fields.at("n"), "7|-8");
  EXPECT_EQ(samples[0].fields.at("box"), make_npy_header(DType::kF32, {2, 2}) + four + "|" +
                                             make_npy_header(DType::kF32, {1, 2}) + four.substr(8));
  EXPECT_EQ(samples[1].key, "empty");
  EXPECT_TRUE(samples[1].fields.empty());
}

// A member of a row each, as np.savez writes them.
std::string npz_of(std::initializer_list<std::pair<std::string, std::vector<uint64_t>>> arrays) {
  std::vector<std::byte> out;
  ZipWriter writer(memory_sink(out));
  for (const auto& [name, shape] : arrays) {
    const std::string array =
        make_npy_header(DType::kU8, shape) + std::string(*count_items(shape, 1), 'x');
    const Bytes bytes = as_bytes(array);
    EXPECT_TRUE(writer.add(name + ".npy", Kind::kNpy, std::span(&bytes, 1)).ok());
  }
  EXPECT_TRUE(writer.finish().ok());
  return std::string(as_text(out));
}

TEST(Npz, a_notice_says_what_was_chosen_and_how_to_choose_otherwise) {
  auto store = std::make_shared<MemoryStore>();
  store->put("d/a.npz", npz_of({{"x", {4, 2}}, {"y", {4}}}));
  store->put("d/b.npz", npz_of({{"x", {3, 2}}, {"y", {3}}}));
  store->put("d/README.md", "about");
  const auto open = [&](const std::string& url) {
    return open_source({url}, {.store = store, .keep_sidecars = false}).value();
  };
  const Opened rows = open("d/a.npz");
  EXPECT_EQ(rows.source->size(), 4u);
  ASSERT_EQ(rows.notices.size(), 1u);
  EXPECT_NE(rows.notices[0].find("'#whole'"), std::string::npos) << rows.notices[0];
  EXPECT_EQ(open("d/a.npz#whole").source->size(), 1u);
  EXPECT_TRUE(open("d/a.npz#rows").notices.empty());
  const Opened folder = open("d");
  EXPECT_EQ(folder.source->size(), 2u);
  ASSERT_EQ(folder.notices.size(), 2u);
  EXPECT_NE(folder.notices[0].find("README.md"), std::string::npos) << folder.notices[0];
  EXPECT_NE(folder.notices[1].find("'#rows'"), std::string::npos) << folder.notices[1];
  EXPECT_EQ(open("d#rows").source->size(), 7u);
  EXPECT_EQ(open("d#rows").source->key(4), "b/00000000");
}

TEST(PickleNumpy, the_same_text_is_decoded_once_however_often_it_is_named) {
  // A text of 1,000 letters beyond ASCII, then 5,000 times _codecs.encode of it.
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\xc3\xbf";
  std::string p =
      "\x80\2c_codecs\nencode\nq\0"s + "X\xd0\7\0\0"s + text + "q\1"s + "X\6\0\0\0latin1q\2"s + "(";
  for (int i = 0; i < 5000; ++i) p += "h\0h\1h\2\x86R"s;
  p += "l.";
  const auto made = unpickle(as_bytes(p), PickleWants::kArrays);
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(made.value().texts.size(), 1u);
  EXPECT_EQ(made.value().texts.front(), std::string(1000, '\xff'));
}

TEST(PickleNumpy, a_shape_has_no_more_axes_than_numpy_has) {
  // {"x": ndarray of `axes` axes of length 1}
  const auto pickle = [](int axes) {
    std::string p =
        "\x80\2}U\1xcnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R"s;
    p += "(K\1(";
    for (int i = 0; i < axes; ++i) p += "K\1";
    p += "tcnumpy\ndtype\nU\2u1\x85R(K\3U\1|NNNtb\x89U\1atbs."s;
    return p;
  };
  const auto status_of = [&](int axes) {
    MemoryStore store;
    store.put("a.pkl", pickle(axes));
    return find_format("pickle").value()->index({store, store.stat("a.pkl").value()}).status();
  };
  EXPECT_TRUE(status_of(64).ok()) << status_of(64).text();
  EXPECT_NE(status_of(65).text().find("more than 64 axes"), std::string::npos)
      << status_of(65).text();
}

TEST(PickleNumpy, other_names_are_refused_and_never_called) {
  for (const std::string& p : {"cos\nsystem\n(S'x'\ntR."s, "\x80\4\x8c\2os\x8c\6system\x93."s,
                               "]]R."s, "]]b."s, "cnumpy\nload\n."s}) {
    const Status status = unpickle(as_bytes(p), PickleWants::kArrays).status();
    EXPECT_EQ(status.code(), Code::kCorrupt) << p;
    EXPECT_NE(status.text().find("nothing was executed"), std::string::npos) << status.text();
  }
}

}  // namespace
}  // namespace headrace

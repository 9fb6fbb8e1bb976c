// SPDX-License-Identifier: Apache-2.0
#include "open/open_arrays.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "array/array_index.h"
#include "array/open_file.h"
#include "base/npy.h"
#include "open/array_indexes.h"
#include "storage/open_store.h"
#include "storage/sink.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

using namespace std::chrono_literals;

// rows × columns, each element its number.
std::string npy_of(uint64_t rows, uint64_t columns, float first = 0) {
  std::string out = make_npy_header(DType::kF32, {rows, columns});
  for (uint64_t i = 0; i < rows * columns; ++i) {
    const float v = first + static_cast<float>(i);
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  return out;
}

std::vector<float> read_field(const Source& source, uint64_t sample, uint32_t field = 0) {
  Request request;
  const std::vector<uint32_t> fields{field};
  const SampleAsk ask{.sample = sample, .fields = fields};
  EXPECT_TRUE(source.needs(ask, request).ok());
  std::vector<Buffer> buffers;
  std::vector<PieceBytes> pieces;
  for (const Unit& unit : request.units) {
    Buffer into;
    EXPECT_TRUE(source.store()
                    .read_at(source.file_path(unit.file), unit.offset, unit.stored_bytes, into)
                    .ok());
    buffers.push_back(std::move(into));
  }
  for (const Piece& piece : request.pieces) pieces.push_back({buffers[piece.unit].bytes()});
  std::vector<std::byte> value;
  KeptRoom room(value);
  const AssembleOutput output{field, pieces, &room};
  EXPECT_TRUE(source.assemble(ask, {&output, 1}).ok());
  std::vector<float> out(value.size() / sizeof(float));
  std::memcpy(out.data(), value.data(), value.size());
  return out;
}

TEST(OpenArraysTest, names_tell_which_files_hold_arrays) {
  EXPECT_TRUE(are_array_files({"a.npy", "s3://b/x.NC#t2m"}));
  EXPECT_TRUE(are_array_files({"cube.zarr/"}));
  EXPECT_FALSE(are_array_files({"a.npy", "b.tar"}));
  EXPECT_FALSE(are_array_files({}));
}

TEST(OpenArraysTest, files_follow_each_other_and_windows_go_over_their_ends) {
  const TestFolder f;
  f.put("a0.npy", npy_of(3, 2));
  f.put("a1.npy", npy_of(4, 2, 6));
  const OpenedArrays plain = open_array_files({f / "a*.npy"}, {}).value();
  EXPECT_EQ(plain.format, "npy");
  EXPECT_EQ(plain.source->size(), 7u);
  EXPECT_EQ(read_field(*plain.source, 5), (std::vector<float>{10, 11}));
  const OpenArrayOptions windows{
      .windows = {{.name = "x", .variable = "data", .steps = 2},
                  {.name = "next", .variable = "data", .steps = 1, .from = 2}},
      .stride = 2};
  const OpenedArrays cut = open_array_files({f / "a*.npy"}, windows).value();
  EXPECT_EQ(cut.source->size(), 3u);
  EXPECT_EQ(read_field(*cut.source, 1), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(read_field(*cut.source, 1, 1), (std::vector<float>{8, 9}));
}

TEST(OpenArraysTest, values_of_a_coordinate_are_selected) {
  const TestFolder f;
  f.put("a.zarr/.zgroup", R"({"zarr_format": 2})");
  const auto put = [&f](const std::string& name, const std::string& shape, const std::string& dims,
                        const std::vector<float>& values) {
    f.put("a.zarr/" + name + "/.zarray",
          R"({"shape": [)" + shape + R"(], "chunks": [)" + shape +
              R"(], "dtype": "<f4", "fill_value": null, "order": "C", "filters": null,
                 "compressor": null, "zarr_format": 2})");
    f.put("a.zarr/" + name + "/.zattrs", R"({"_ARRAY_DIMENSIONS": [)" + dims + "]}");
    const std::string key = std::count(shape.begin(), shape.end(), ',') == 2 ? "0.0.0" : "0";
    f.put("a.zarr/" + name + "/" + key, as_text(std::as_bytes(std::span(values))));
  };
  std::vector<float> all(2 * 3 * 2);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
  put("z", "2, 3, 2", R"("time", "level", "x")", all);
  put("level", "3", R"("level")", {1000, 850, 500});
  const auto opened = [&f](std::map<std::string, std::vector<double>> select) {
    return open_array_files({f / "a.zarr"}, {.windows = {{.name = "z", .select = select}}});
  };
  const OpenedArrays two = opened({{"level", {500, 1000}}}).value();
  EXPECT_EQ(read_field(*two.source, 1), (std::vector<float>{10, 11, 6, 7}));
  EXPECT_EQ(two.source->schema()[0].shape, (std::vector<int64_t>{2, 2}));
  const OpenedArrays both = opened({{"level", {850}}, {"x", {1}}}).value();  // x by its number
  EXPECT_EQ(read_field(*both.source, 0), (std::vector<float>{3}));
  const auto says = [&](std::map<std::string, std::vector<double>> select, const char* words) {
    EXPECT_NE(opened(std::move(select)).status().text().find(words), std::string::npos) << words;
  };
  says({{"level", {700}}}, "'level' has no value 700; it has 1000, 850, 500");
  says({{"x", {2}}}, "there is no index 2 on 'x', which has 2");
  says({{"y", {2}}}, "has no axis 'y' to select from");
  says({{"time", {0}}}, "samples run along 'time'");
}

TEST(OpenArraysTest, windows_that_would_go_over_a_gap_are_left_out) {
  const TestFolder f;
  const auto put = [&f](const std::string& store, const std::vector<float>& values,
                        const std::string& units) {
    f.put(store + "/.zgroup", R"({"zarr_format": 2})");
    for (const std::string name : {"x", "time"}) {
      f.put(store + "/" + name + "/.zarray",
            R"({"shape": [)" + std::to_string(values.size()) + R"(], "chunks": [)" +
                std::to_string(values.size()) +
                R"(], "dtype": "<f4", "fill_value": null, "order": "C", "filters": null,
                   "compressor": null, "zarr_format": 2})");
      f.put(store + "/" + name + "/.zattrs",
            R"({"_ARRAY_DIMENSIONS": ["time"])" +
                (name == "time" && !units.empty() ? R"(, "units": ")" + units + "\"}" : "}"));
      f.put(store + "/" + name + "/0", as_text(std::as_bytes(std::span(values))));
    }
  };
  const auto opened = [&f](const std::vector<std::string>& stores, bool gaps = false,
                           int64_t steps = 2) {
    std::vector<std::string> urls;
    for (const std::string& store : stores) urls.push_back(f / store);
    return open_array_files(urls, {.windows = {{.name = "x", .steps = steps}}, .gaps = gaps});
  };
  const std::string hours = "hours since 2000-01-01";
  put("a.zarr", {0, 1, 2, 10, 11, 12}, hours);
  const OpenedArrays some = opened({"a.zarr"}).value();
  ASSERT_EQ(some.source->size(), 4u);
  EXPECT_EQ(read_field(*some.source, 1), (std::vector<float>{1, 2}));
  EXPECT_EQ(read_field(*some.source, 2), (std::vector<float>{10, 11}));
  ASSERT_EQ(some.notices.size(), 1u);
  EXPECT_NE(some.notices[0].find("1 gaps, the first behind 2; 1 windows"), std::string::npos)
      << some.notices[0];
  EXPECT_EQ(opened({"a.zarr"}, true).value().source->size(), 5u);
  EXPECT_NE(opened({"a.zarr"}, false, 4).status().text().find("without a gap"), std::string::npos);
  // Between files, too; months are none, nor are levels.
  put("b.zarr", {13, 14, 20, 21}, hours);
  EXPECT_EQ(opened({"a.zarr", "b.zarr"}).value().source->size(), 7u);
  put("months.zarr", {0, 31, 59, 90, 120}, "days since 2001-01-01");
  EXPECT_EQ(opened({"months.zarr"}).value().source->size(), 4u);
  put("levels.zarr", {1000, 850, 500, 100}, "hPa");
  EXPECT_EQ(opened({"levels.zarr"}).value().source->size(), 3u);
  put("c.zarr", {0, 1}, "days since 2000-01-02");
  EXPECT_NE(opened({"a.zarr", "c.zarr"}).status().text().find("counts otherwise"),
            std::string::npos);
  EXPECT_EQ(opened({"a.zarr", "c.zarr"}, true).value().source->size(), 7u);
}

TEST(OpenArraysTest, what_does_not_fit_is_said) {
  const TestFolder f;
  f.put("a.npy", npy_of(3, 2));
  const auto text = [&](const OpenArrayOptions& options) {
    return open_array_files({f / "a.npy"}, options).status().text();
  };
  EXPECT_NE(text({.windows = {{.name = "x"}}}).find("no variable 'x'; it has data"),
            std::string::npos);
  EXPECT_NE(text({.windows = {{.name = "data", .steps = 9}}}).find("takes 9 steps"),
            std::string::npos);
  EXPECT_NE(text({.windows = {{.name = "data", .patch = {1, 1}}}}).find("a patch of 2 axes"),
            std::string::npos);
  f.put("b.h5", "\x89HDF\r\n\x1a\n");
  const Status none = open_array_files({f / "b.h5"}, {}).status();
  EXPECT_EQ(none.code(), Code::kUnsupported);
  EXPECT_NE(none.text().find("headrace index"), std::string::npos) << none.text();
}

TEST(OpenArraysTest, a_zarr_store_is_opened_by_its_metadata) {
  const TestFolder f;
  f.put("a.zarr/.zgroup", R"({"zarr_format": 2})");
  f.put("a.zarr/x/.zarray",
        R"({"shape": [4, 2], "chunks": [2, 2], "dtype": "<f4", "fill_value": -1, "order": "C",
            "filters": null, "compressor": null, "zarr_format": 2})");
  f.put("a.zarr/x/.zattrs", R"({"_ARRAY_DIMENSIONS": ["time", "lon"], "units": "K"})");
  const std::vector<float> chunk{4, 5, 6, 7};
  f.put("a.zarr/x/1.0", as_text(std::as_bytes(std::span(chunk))));
  const OpenedArrays opened = open_array_files({f / "a.zarr"}, {.along = "time"}).value();
  EXPECT_EQ(opened.format, "zarr");
  EXPECT_EQ(opened.source->size(), 4u);
  EXPECT_EQ(read_field(*opened.source, 3), (std::vector<float>{6, 7}));
  EXPECT_TRUE(std::isnan(read_field(*opened.source, 0)[0]));  // xarray's missing value
  f.put("a.zarr/x/.zarray", "{");
  EXPECT_EQ(open_array_files({f / "a.zarr"}, {}).status().code(), Code::kCorrupt);
}

// An index as Python keeps it, of a file that is opened by nothing else here.
class ArrayIndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HEADRACE_CACHE", (f_ / "cache").c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    f_.put("x.h5", npy_of(6, 2));
    const auto store = open_store(path_).value().store;
    const FileInfo info = store->stat(path_).value();
    f_.put("x.npy", npy_of(6, 2));
    FileArray array = open_npy(*store, f_ / "x.npy").value().arrays[0];
    array.array->name = "x";
    array.files = {""};
    Tree stamps = Tree::map();
    stamps.set("names", Tree::texts({""}));
    const std::vector<uint64_t> numbers{info.bytes, static_cast<uint64_t>(stamp_of(info)), 0};
    stamps.set("numbers", Tree::numbers("<u8", {1, 3}, std::as_bytes(std::span(numbers))));
    Tree entry = Tree::map();
    entry.set("stamps", std::move(stamps));
    entry.set("arrays", Tree::list({tree_of(array)}));
    index_.set("format", Tree("hdf5"));
    index_.set("entries", Tree::list({entry}));
  }
  void TearDown() override { ::unsetenv("HEADRACE_CACHE"); }  // NOLINT(concurrency-mt-unsafe)

  TestFolder f_;
  const std::string path_ = f_ / "x.h5";
  const ArrayPlaces places_{{path_}, {""}, ""};
  Tree index_ = Tree::map();
};

TEST_F(ArrayIndexTest, opens_what_only_python_could_open) {
  EXPECT_EQ(keep_array_index(places_, index_, "").value(), "");
  const OpenedArrays opened = open_array_files({path_}, {}).value();
  EXPECT_EQ(opened.format, "hdf5");
  EXPECT_EQ(opened.source->size(), 6u);
  EXPECT_EQ(read_field(*opened.source, 4), (std::vector<float>{8, 9}));
  EXPECT_EQ(opened.source->schema()[0].name, "x");
}

TEST_F(ArrayIndexTest, is_not_believed_of_a_file_that_changed) {
  ASSERT_TRUE(keep_array_index(places_, index_, "").ok());
  std::this_thread::sleep_for(30ms);
  f_.put("x.h5", npy_of(6, 2, 1));
  EXPECT_FALSE(find_array_index(places_, "").ok());
  ASSERT_TRUE(keep_array_index(places_, index_, f_ / "index").ok());
  EXPECT_EQ(find_array_index(places_, f_ / "index").status().code(), Code::kCorrupt);  // its time
  // One that was made of files elsewhere: their times tell nothing.
  ASSERT_TRUE(write_file(f_.put("old/headrace.arrays", ""), pack_array_index(index_)).ok());
  EXPECT_TRUE(find_array_index(places_, f_ / "old").ok());
  f_.put("x.h5", npy_of(7, 2));
  EXPECT_EQ(find_array_index(places_, f_ / "old").status().code(), Code::kCorrupt);
  EXPECT_EQ(find_array_index({{path_}, {"g"}, ""}, f_ / "index").status().code(),
            Code::kInvalidArgument);
}

TEST_F(ArrayIndexTest, any_changed_byte_is_noticed) {
  const std::vector<std::byte> good = pack_array_index(index_);
  EXPECT_EQ(parse_array_index(good).value(), index_);
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{0x20};
    EXPECT_FALSE(parse_array_index(bad).ok()) << i;
    EXPECT_FALSE(parse_array_index(Bytes(good).first(i)).ok()) << i;
  }
}

}  // namespace
}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "array/netcdf_classic.h"

#include <gtest/gtest.h>

#include "array/array_fixture.h"
#include "storage/memory.h"

namespace headrace {
namespace {

// Writes headers as the specification draws them.
class Writer {
 public:
  explicit Writer(int version) : version_(version) {
    put_all(out_, as_bytes("CDF"));
    out_.push_back(static_cast<std::byte>(version));
  }
  size_t count_bytes() const { return version_ == 5 ? 8 : 4; }
  void count(uint64_t n) { put_be(out_, n, count_bytes()); }
  void word(uint32_t n) { put_be(out_, n, 4); }
  void begin(uint64_t n) { put_be(out_, n, version_ == 1 ? 4 : 8); }
  void list(uint32_t tag, uint64_t n) {
    word(n == 0 ? 0 : tag);
    count(n);
  }
  void name(std::string_view text) {
    count(text.size());
    put_all(out_, as_bytes(text));
    while (out_.size() % 4 != 0) out_.push_back(std::byte{0});
  }
  ByteList filled_to(size_t bytes) {
    out_.resize(bytes);
    return out_;
  }

 private:
  const int version_;
  ByteList out_;
};

// i16 t[time, x: 3] and f32 u[time], records from 512 on, each of 8 + 4 bytes.
ByteList two_record_variables(int version, uint64_t records, size_t bytes) {
  Writer w(version);
  w.count(records);
  w.list(0x0a, 2);
  w.name("time");
  w.count(0);
  w.name("x");
  w.count(3);
  w.list(0x0c, 0);
  w.list(0x0b, 2);
  w.name("t");
  w.count(2);
  w.count(0);
  w.count(1);
  w.list(0x0c, 2);
  w.name("add_offset");
  w.word(3);
  w.count(1);
  w.word(0xfffe0000);  // -2, filled up
  w.name("units");
  w.word(2);
  w.name("m s-1");  // a count and the text, filled up
  w.word(3);
  w.count(8);
  w.begin(512);
  w.name("u");
  w.count(1);
  w.count(0);
  w.list(0x0c, 0);
  w.word(5);
  w.count(4);
  w.begin(520);
  return w.filled_to(bytes);
}

Result<NetcdfFile> parse(const ByteList& bytes) {
  MemoryStore store;
  store.put("f.nc", as_text(bytes));
  return read_netcdf_classic(store, "f.nc");
}

TEST(netcdf_classic, records_of_several_variables_lie_one_after_the_other) {
  for (const int version : {1, 2, 5}) {
    const auto file = parse(two_record_variables(version, 4, 560));
    ASSERT_TRUE(file.ok()) << file.status().text();
    const NetcdfVariable& t = file.value().variables[0];
    EXPECT_EQ(t.name, "t");
    EXPECT_EQ(t.shape, (std::vector<int64_t>{4, 3}));
    EXPECT_EQ(t.dtype, DType::kI16);
    EXPECT_EQ(t.begin, 512u);
    EXPECT_EQ(t.bytes, 6u);
    EXPECT_EQ(t.stride, 12u);
    ASSERT_EQ(t.attributes.size(), 2u);
    EXPECT_EQ(t.attributes[0].name, "add_offset");
    EXPECT_EQ(t.attributes[0].dtype, DType::kI16);
    EXPECT_EQ(as_text(t.attributes[0].values), "\xff\xfe");
    EXPECT_EQ(t.attributes[1].name, "units");
    EXPECT_FALSE(t.attributes[1].dtype);
    EXPECT_EQ(as_text(t.attributes[1].values), "m s-1");
    EXPECT_EQ(file.value().variables[1].stride, 12u);
  }
}

TEST(netcdf_classic, an_open_count_of_records_is_what_the_file_holds) {
  for (const int version : {1, 2, 5}) {
    const auto file = parse(two_record_variables(version, ~uint64_t{0}, 512 + 12 * 3 + 5));
    ASSERT_TRUE(file.ok()) << file.status().text();
    EXPECT_EQ(file.value().variables[0].shape[0], 3);
  }
}

TEST(netcdf_classic, every_cut_is_an_error_with_an_offset) {
  for (const int version : {1, 2, 5})
    for (size_t n = 4; n < 560; ++n) {
      const auto file = parse(two_record_variables(version, 4, n));
      ASSERT_FALSE(file.ok()) << n;
      EXPECT_EQ(file.status().code(), Code::kCorrupt);
      EXPECT_GE(file.status().place().offset, 0) << n;
      EXPECT_LE(file.status().place().offset, static_cast<int64_t>(n));
    }
}

TEST(netcdf_classic, more_records_than_the_file_holds_are_an_error) {
  EXPECT_TRUE(parse(two_record_variables(1, 4, 560)).ok());
  EXPECT_EQ(parse(two_record_variables(1, 5, 560)).status().code(), Code::kCorrupt);
  EXPECT_EQ(parse(two_record_variables(5, uint64_t{1} << 61, 560)).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "array/flat_values.h"

#include <gtest/gtest.h>

#include "storage/test_folder.h"

namespace headrace {
namespace {

// Ten bytes in chunks of four, the second one never stored; three files.
class FlatValues : public ::testing::Test {
 protected:
  void SetUp() override {
    f_.put("a", "0123");
    f_.put("b", "__89__");
    flat_.name = "flat";
    flat_.dtype = DType::kU8;
    flat_.shape = {10};
    flat_.chunk = {4};
    flat_.places = {{0, 0, 0, kWholeFile}, {0, 0, 0, 0}, {1, 0, 2, 4}};
    offsets_.name = "offsets";
    offsets_.dtype = DType::kI64;
    files_ = {f_ / "a", f_ / "b", f_ / "offsets"};
  }
  Result<std::shared_ptr<const ValueTable>> read(const std::vector<int64_t>& starts) {
    std::string bytes(reinterpret_cast<const char*>(starts.data()), starts.size() * 8);
    f_.put("offsets", bytes);
    offsets_.shape = {static_cast<int64_t>(starts.size())};
    offsets_.chunk = offsets_.shape;
    offsets_.places = {{2, 0, 0, bytes.size()}};
    return read_flat_values(flat_, offsets_, files_, *TestFolder::store());
  }
  // The value as its pieces make it.
  std::string value(const ValueTable& table, size_t i) {
    Request request;
    request.clear();
    if (table.extents[i].bytes > 0) add_flat_value(table, table.extents[i], request);
    std::string out;
    for (size_t p = 0; p < request.pieces.size(); ++p) {
      const Piece& piece = request.pieces[p];
      EXPECT_EQ(piece.continues, p > 0);
      if (piece.unit == kInlineUnit) {
        out += as_text(Bytes(request.inline_bytes).subspan(piece.begin, piece.length));
        continue;
      }
      const Unit& unit = request.units[piece.unit];
      Buffer bytes;
      EXPECT_TRUE(TestFolder::store()
                      ->read_at(files_[unit.file], unit.offset, unit.stored_bytes, bytes)
                      .ok());
      out += as_text(bytes.bytes().subspan(piece.begin, piece.length));
    }
    return out;
  }

  TestFolder f_;
  Array flat_;
  Array offsets_;
  std::vector<std::string> files_;
};

TEST_F(FlatValues, lie_in_one_chunk_or_several_or_in_none) {
  const auto table = read({0, 2, 2, 9, 10}).value();
  ASSERT_EQ(table->extents.size(), 4u);
  EXPECT_EQ(value(*table, 0), "01");
  EXPECT_EQ(value(*table, 1), "");
  EXPECT_EQ(value(*table, 2), std::string("23") + std::string(4, '\0') + "8");
  EXPECT_EQ(value(*table, 3), "9");
  EXPECT_EQ(table->total_bytes, 10u);
}

TEST_F(FlatValues, offsets_that_do_not_fit_are_corrupt) {
  for (const std::vector<int64_t>& starts :
       {std::vector<int64_t>{0, 5, 3}, {0, 11}, {-1, 3}, {0, int64_t{1} << 62}})
    EXPECT_EQ(read(starts).status().code(), Code::kCorrupt);
  EXPECT_TRUE(read({0}).value()->extents.empty());
}

TEST_F(FlatValues, a_chunk_that_is_too_short_is_corrupt) {
  flat_.places[2].stored = 1;
  EXPECT_EQ(read({0, 10}).status().code(), Code::kCorrupt);
}

TEST_F(FlatValues, compressed_ones_are_refused) {
  flat_.filters = {{ChunkFilter::kZlib}};
  EXPECT_EQ(read({0, 10}).status().code(), Code::kUnsupported);
}

TEST_F(FlatValues, offsets_that_were_never_stored_take_no_memory) {
  offsets_.shape = offsets_.chunk = {int64_t{1} << 40};
  offsets_.places = {{2, 0, 0, 0}};
  const auto table = read_flat_values(flat_, offsets_, files_, *TestFolder::store());
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().code(), Code::kCorrupt);
  EXPECT_NE(table.status().text().find("'offsets' says 1099511627776 offsets, and 0 bytes"),
            std::string::npos)
      << table.status().text();
}

}  // namespace
}  // namespace headrace

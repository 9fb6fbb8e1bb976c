// SPDX-License-Identifier: Apache-2.0
#include "array/zarr_metadata.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headrace {
namespace {

Result<ZarrMetadata> second(const std::string& members, const char* attributes = nullptr) {
  const Json document =
      Json::parse(R"({"zarr_format": 2, "shape": [7, 5], "chunks": [3, 2], "order": "C",)" +
                  members + "}")
          .value();
  if (attributes == nullptr) return zarr_metadata("x", document, nullptr);
  const Json said = Json::parse(attributes).value();
  return zarr_metadata("x", document, &said);
}

Result<ZarrMetadata> third(const std::string& type, const std::string& fill,
                           const std::string& codecs = R"({"name": "bytes"})",
                           const std::string& attributes = "{}") {
  return zarr_metadata(
      "x",
      Json::parse(
          R"({"zarr_format": 3, "node_type": "array", "shape": [7, 5], "data_type": )" + type +
          R"(, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [6, 4]}},)" +
          R"("chunk_key_encoding": {"name": "default"}, "fill_value": )" + fill +
          R"(, "codecs": [)" + codecs + R"(], "attributes": )" + attributes + "}")
          .value(),
      nullptr);
}

template <typename T>
T element(const ZarrMetadata& of) {
  return load_le<T>(of.array.array->fill);
}

TEST(ZarrMetadata, numbers_of_both_versions) {
  const ZarrMetadata two =
      second(
          R"("dtype": ">f8", "fill_value": "NaN", "compressor": {"id": "zstd"}, "filters": null)")
          .value();
  EXPECT_EQ(two.array.array->dtype, DType::kF64);
  EXPECT_TRUE(two.array.array->big_endian);
  EXPECT_EQ(two.keys.grid, (Extents{3, 3}));
  EXPECT_EQ(two.keys.separator, '.');
  EXPECT_EQ(two.array.array->filters, (FilterChain{{ChunkFilter::kZstd, 0}}));
  const ZarrMetadata three = third(R"("float16")", "1.5").value();
  EXPECT_EQ(element<uint16_t>(three), 0x3e00);
  EXPECT_EQ(three.keys.lead, "c");
  EXPECT_EQ(element<uint64_t>(third(R"("uint64")", "18446744073709551615").value()), ~uint64_t{0});
  EXPECT_EQ(element<uint32_t>(third(R"("float32")", R"("0x7fc00001")").value()), 0x7fc00001u);
}

TEST(ZarrMetadata, dates_say_their_units_and_complex_numbers_are_pairs) {
  const ZarrMetadata date = second(R"("dtype": "<M8[ns]", "fill_value": 0)").value();
  EXPECT_EQ(date.array.array->dtype, DType::kI64);
  EXPECT_EQ(date.array.attributes.text_of("units"), "nanoseconds since 1970-01-01");
  // A chunk that is missing holds no dates where nothing says which, as in zarr-python.
  const ZarrMetadata none = second(R"("dtype": "<M8[s]", "fill_value": null)").value();
  EXPECT_EQ(element<uint64_t>(none), uint64_t{1} << 63);
  const ZarrMetadata swapped = second(R"("dtype": ">m8[s]", "fill_value": null)").value();
  EXPECT_EQ(element<uint64_t>(swapped), 0x80u);
  const std::string hours = R"({"name": "numpy.timedelta64", "configuration": {"unit": "h"}})";
  EXPECT_EQ(third(hours, R"("NaT")").value().array.attributes.text_of("units"), "hours");
  const ZarrMetadata pair = third(R"("complex64")", "[0.0, 0.0]").value();
  EXPECT_EQ(pair.array.array->dtype, DType::kF32);
  EXPECT_EQ(pair.array.array->shape, (Extents{7, 5, 2}));
  EXPECT_EQ(pair.array.inner, 1u);
  EXPECT_EQ(pair.keys.grid, (Extents{2, 2}));
  EXPECT_NE(third(R"("complex64")", "[0.0, 1.0]").value().array.why, "");
}

TEST(ZarrMetadata, texts_of_fixed_length_are_read_and_others_left_to_zarr_python) {
  const ZarrMetadata fixed =
      zarr_metadata("x",
                    Json::parse(R"({"zarr_format": 2, "shape": [7], "chunks": [3], "dtype": "|S5",
                                    "fill_value": "AAAAAAA="})")
                        .value(),
                    nullptr)
          .value();
  EXPECT_EQ(fixed.array.kind, Kind::kText);
  EXPECT_EQ(fixed.array.array->shape, (Extents{7, 5}));
  EXPECT_TRUE(fixed.array.array->fill.empty());
  EXPECT_EQ(third(R"("string")", R"("")").value().array.by_python, "texts");
  EXPECT_NE(second(R"("dtype": "<f4", "fill_value": 0, "compressor": {"id": "bz2", "level": 1})")
                .value()
                .array.by_python.find("'bz2' as {\"id\": \"bz2\", \"level\": 1}"),
            std::string::npos);
  EXPECT_NE(second(R"("dtype": [["a", "<f4"]], "fill_value": null)").value().array.why, "");
}

TEST(ZarrMetadata, numbers_that_are_scaled_and_what_is_missing) {
  const ZarrMetadata scaled =
      second(R"("dtype": "<f8", "fill_value": 2.5, "compressor": null, "filters": [
             {"id": "fixedscaleoffset", "dtype": "<f8", "astype": "<i2", "scale": 10, "offset": 1}])")
          .value();
  EXPECT_EQ(scaled.array.array->dtype, DType::kI16);
  EXPECT_TRUE(scaled.array.array->packed);
  EXPECT_EQ(element<int16_t>(scaled), 15);
  const ZarrMetadata missing =
      second(R"("dtype": "<i2", "fill_value": -9)", R"({"_ARRAY_DIMENSIONS": ["t", "x"]})").value();
  EXPECT_EQ(missing.array.array->missing, -9.0);
  EXPECT_EQ(missing.array.dims, (std::vector<std::string>{"t", "x"}));
  // 1e20 as xarray writes it.
  const ZarrMetadata words =
      third(R"("float64")", "0.0", R"({"name": "bytes"})", R"({"_FillValue": "QIy1eB2vFUQ="})")
          .value();
  EXPECT_EQ(words.array.array->missing, 1e20);
}

TEST(ZarrMetadata, shards_divide_into_chunks_or_are_damage) {
  const auto sharded = [](const char* inner, const char* index) {
    return third(R"("int8")", "0",
                 std::string(R"({"name": "sharding_indexed", "configuration": {"chunk_shape": )") +
                     inner + R"(, "codecs": [{"name": "bytes"}], "index_codecs": [)" + index +
                     "]}}");
  };
  const char* plain = R"({"name": "bytes"}, {"name": "crc32c"})";
  const ZarrMetadata two = sharded("[3, 2]", plain).value();
  EXPECT_EQ(two.shard.value().per_shard, (Extents{2, 2}));
  EXPECT_EQ(two.shard.value().chunks, (Extents{3, 3}));
  EXPECT_EQ(two.array.array->chunk, (Extents{3, 2}));
  EXPECT_EQ(sharded("[4, 2]", plain).status().code(), Code::kCorrupt);
  EXPECT_NE(sharded("[3, 2]", R"({"name": "gzip"})").value().array.why, "");
}

TEST(ZarrMetadata, what_is_not_as_zarr_has_it_is_damage) {
  for (const char* members :
       {R"("fill_value": 0)", R"("dtype": "<f4", "fill_value": "red")",
        R"("dtype": "<f4", "fill_value": [1])", R"("dtype": "<u2", "fill_value": "0x123456")",
        R"("dtype": "<f4", "fill_value": 0, "dimension_separator": "-")",
        R"("dtype": "<f4", "fill_value": 0, "filters": [{"level": 3}])"})
    EXPECT_EQ(second(members).status().code(), Code::kCorrupt) << members;
  EXPECT_EQ(third("3", "0").status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace headrace

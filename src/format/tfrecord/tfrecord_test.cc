// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/rng.h"
#include "format/tfrecord/example.h"
#include "format/tfrecord/frame.h"
#include "format/tfrecord/protobuf.h"
#include "open/test_data.h"

namespace headrace {
namespace {

using ByteVector = std::vector<std::byte>;

ByteVector message(uint32_t number, Bytes body) {
  ByteVector out;
  put_wire_bytes(out, number, body);
  return out;
}

ByteVector example(std::string_view name, Bytes feature) {
  ByteVector entry = message(1, as_bytes(name));
  put_wire_bytes(entry, 2, feature);
  return message(1, message(1, entry));
}

// The check value of CRC-32C and the mask of the format's description.
TEST(Tfrecord, the_checksum_is_the_published_one) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(masked_crc32c(as_bytes("123456789")),
            static_cast<uint32_t>(((0xe3069283u >> 15) | (0xe3069283u << 17)) + 0xa282ead8u));
}

TEST(Example, is_not_what_merely_looks_like_it) {
  std::vector<Feature> features;
  EXPECT_FALSE(parse_example({}, features));
  EXPECT_FALSE(parse_example(as_bytes("\n"), features));
  EXPECT_FALSE(parse_example(message(1, {}), features)) << "no feature";
  EXPECT_TRUE(parse_example(example("x", message(1, message(1, as_bytes("v")))), features));
  EXPECT_FALSE(parse_example(example("x", message(4, {})), features)) << "no such list";
  EXPECT_FALSE(parse_example(example("x", message(2, message(1, as_bytes("abc")))), features))
      << "three bytes are no floats";
  const std::string endless(11, '\xff');
  EXPECT_FALSE(parse_example(example("x", message(3, message(1, as_bytes(endless)))), features));
  ByteVector sequence = example("x", message(1, message(1, as_bytes("v"))));
  put_wire_bytes(sequence, 2, {});
  EXPECT_FALSE(parse_example(sequence, features)) << "a SequenceExample";
}

TEST(Example, any_cut_of_it_is_no_example_or_a_shorter_one) {
  const ByteVector whole = example("name", message(3, message(1, as_bytes("\x01\x02\x03"))));
  std::vector<Feature> features;
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(parse_example(Bytes(whole).first(n), features)) << n;
}

TEST(Example, a_list_opens_to_what_was_counted) {
  std::vector<Feature> features;
  const ByteVector record = example("x", message(3, message(1, as_bytes("\x01\x02\x83\x01"))));
  ASSERT_TRUE(parse_example(record, features));
  Buffer out;
  ASSERT_TRUE(open_number_list(FeatureType::kInt64, features[0].list, out).ok());
  ASSERT_EQ(out.size(), features[0].count * 8);
  EXPECT_EQ(load_le<int64_t>(out.bytes().subspan(16)), 131);
  EXPECT_EQ(open_number_list(FeatureType::kFloat, as_bytes("x"), out).code(), Code::kCorrupt);
}

TEST(TfrecordWriter, refuses_by_name_what_an_example_cannot_hold) {
  const auto append = [](std::string_view field) {
    ByteVector out;
    const auto writer = find_format("tfrecord").value()->create({.file = memory_sink(out)}).value();
    const RecordValue value{.field = field};
    return writer->append({"key", {&value, 1}});
  };
  EXPECT_TRUE(append("any/name at all").ok());
  EXPECT_EQ(append("__key__").code(), Code::kUnsupported);
  EXPECT_EQ(append("").code(), Code::kUnsupported);
}

}  // namespace
}  // namespace headrace

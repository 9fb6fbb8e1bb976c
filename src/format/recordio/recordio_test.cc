// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "open/test_data.h"

namespace headrace {
namespace {

const Field kList{.name = "label", .kind = Kind::kArray, .dtype = DType::kF32, .shape = {kVaries}};

TEST(Recordio, several_labels_come_back_as_an_array_of_floats) {
  const Format& format = *find_format("recordio").value();
  std::vector<std::byte> rec, idx;
  const Schema schema{kList, {.name = "data"}};
  ASSERT_TRUE(format.can_hold(schema).ok());
  const auto writer =
      format.create({.file = memory_sink(rec), .companion = memory_sink(idx), .schema = schema})
          .value();
  const std::vector<std::vector<float>> labels{{1.5f, 2.5f}, {4.0f}};
  for (const std::vector<float>& list : labels) {
    const std::vector<RecordValue> values{
        {.field = "label", .kind = Kind::kArray, .bytes = std::as_bytes(std::span(list))},
        {.field = "data", .bytes = as_bytes("p")}};
    ASSERT_TRUE(writer->append({"key", values}).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  const auto store = std::make_shared<MemoryStore>();
  store->put("x.rec", rec);
  store->put("x.idx", idx);
  const Opened opened = open_source({"x.rec"}, {.store = store, .keep_sidecars = false}).value();
  const std::vector<TestSample> samples = read_samples(*opened.source).value();
  ASSERT_EQ(samples.size(), labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    EXPECT_EQ(samples[i].fields.at("label"), as_text(std::as_bytes(std::span(labels[i]))));
    EXPECT_EQ(samples[i].fields.at("data"), "p");
  }
  EXPECT_EQ(field_text(opened.source->schema()[0]), "array f32[?]");
}

TEST(Recordio, what_it_cannot_hold_is_refused_before_the_first_sample) {
  const Format& format = *find_format("recordio").value();
  const Field number{.name = "class", .kind = Kind::kInt};
  EXPECT_TRUE(format.can_hold({kList, number}).ok()) << "beside a number an array is the payload";
  EXPECT_EQ(format.can_hold({{.name = "a"}, {.name = "b"}, number}).code(), Code::kUnsupported);
  EXPECT_EQ(format.can_hold({{.name = "a"}}).code(), Code::kUnsupported) << "no label";
  EXPECT_EQ(format.can_hold({number}).code(), Code::kUnsupported) << "no payload";
  EXPECT_EQ(format.can_hold({{.name = "a", .many = true}, number}).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace headrace

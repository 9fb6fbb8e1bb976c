// SPDX-License-Identifier: Apache-2.0
//
// Values that samples lack, and sources of a blend that differ.
#include "loader/absent.h"

#include <gtest/gtest.h>

#include "format/registry.h"
#include "loader/dataset.h"
#include "loader/loader.h"
#include "open/open.h"
#include "storage/memory.h"
#include "storage/sink.h"

namespace headrace {
namespace {

// Ten samples with "id"; the even ones have "cls" too, or what it is called.
std::shared_ptr<const Source> make_data(const std::string& label = "cls") {
  auto store = std::make_shared<MemoryStore>();
  std::vector<std::byte> bytes;
  auto writer = find_format("tar").value()->create({.file = memory_sink(bytes)}).value();
  for (int i = 0; i < 10; ++i) {
    const std::string number = std::to_string(i);
    std::vector<RecordValue> values{{"id", Kind::kText, Storage::kExtent, as_bytes(number)}};
    if (i % 2 == 0) values.push_back({label, Kind::kInt, Storage::kExtent, as_bytes(number)});
    EXPECT_TRUE(writer->append({number, values}).ok());
  }
  EXPECT_TRUE(writer->finish().ok());
  store->put("x.tar", std::move(bytes));
  return open_source({"x.tar"}, {.store = std::move(store), .keep_sidecars = false}).value().source;
}

LoaderOptions options(size_t sources = 1) {
  LoaderOptions o;
  o.plan.shuffle = Shuffle::kNone;
  o.plan.cut = {10, 0, 1, Tail::kKeep};
  o.threads = 2;
  if (sources > 1) o.plan.weights.assign(sources, 1);
  return o;
}

std::unique_ptr<Batch> first_batch(Loader& loader) {
  EXPECT_TRUE(loader.begin({0, 0}, false, 1).ok());
  std::unique_ptr<Batch> batch;
  EXPECT_EQ(loader.next(batch, 20000).value(), Engine::Next::kBatch);
  return batch;
}

std::vector<int64_t> numbers(const Column& column) {
  const auto* data = reinterpret_cast<const int64_t*>(column.values->data());
  return {data, data + column.shape[0]};
}

FieldRequest label(const std::string& field = "cls") {
  return {.output = "y", .field = field, .what = "scalar"};
}

TEST(AbsentTest, a_default_stands_where_a_sample_has_none) {
  FieldRequest y = label();
  y.otherwise = DefaultValue(PadNumber(int64_t{-1}));
  const auto loader = Loader::make({{"", make_data(), {y}}}, options()).value();
  EXPECT_EQ(numbers(first_batch(*loader)->columns[0]),
            (std::vector<int64_t>{0, -1, 2, -1, 4, -1, 6, -1, 8, -1}));
}

TEST(AbsentTest, an_optional_field_adds_a_mask) {
  FieldRequest y = label();
  y.optional = true;
  const auto loader = Loader::make({{"", make_data(), {y}}}, options()).value();
  const auto batch = first_batch(*loader);
  ASSERT_EQ(loader->columns().size(), 2U);
  EXPECT_EQ(loader->columns()[1].spec.name, "y_valid");
  for (size_t i = 0; i < 10; ++i)
    EXPECT_EQ(batch->columns[1].values->data()[i], std::byte{i % 2 == 0});
}

TEST(AbsentTest, without_either_it_is_bad_data_that_names_the_remedy) {
  const auto dataset = Dataset::make(make_data(), {label()}).value();
  const Status status = dataset->at(1).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.text().find("optional=True"), std::string::npos) << status.text();
}

TEST(AbsentTest, as_they_lie_a_list_has_an_empty_place) {
  std::vector<FieldRequest> requests = fields_as_they_lie(make_data()->schema());
  for (FieldRequest& r : requests)
    if (r.field == "cls") r.what = "text";
  const auto loader = Loader::make({{"", make_data(), requests}}, options()).value();
  const auto batch = first_batch(*loader);
  const Column& column = batch->columns[loader->columns()[0].spec.name == "cls" ? 0 : 1];
  EXPECT_NE(column.items[0], nullptr);
  EXPECT_EQ(column.items[1], nullptr);
}

TEST(AbsentTest, a_default_that_the_type_cannot_hold_is_refused) {
  FieldRequest y = label();
  y.otherwise = DefaultValue(PadNumber(0.5));
  EXPECT_NE(make_field(y, *make_data()).status().text().find("which i64 cannot hold"),
            std::string::npos);
}

TEST(AbsentTest, sources_of_a_blend_have_fields_of_their_own) {
  FieldRequest a = label();
  FieldRequest b = label("lab");
  a.otherwise = b.otherwise = DefaultValue(PadNumber(int64_t{-1}));
  const auto loader =
      Loader::make({{"a", make_data(), {a}}, {"b", make_data("lab"), {b}}}, options(2)).value();
  const auto batch = first_batch(*loader);
  const std::vector<int64_t> got = numbers(batch->columns[0]);
  for (size_t i = 0; i < 10; ++i)
    EXPECT_EQ(got[i], batch->indices[i] % 2 == 0 ? batch->indices[i] : -1);
}

TEST(AbsentTest, a_source_without_the_field_takes_the_type_of_the_others) {
  FieldRequest y = label();
  y.otherwise = DefaultValue(PadNumber(int64_t{-1}));
  y.options = Params({{"dtype", std::string("i32")}});
  const auto loader =
      Loader::make({{"a", make_data("lab"), {y}}, {"b", make_data(), {y}}}, options(2)).value();
  EXPECT_EQ(loader->columns()[0].spec.value.text(), "i32[]");
}

TEST(AbsentTest, outputs_that_differ_are_refused_with_both_sources) {
  FieldRequest other = label();
  other.options = Params({{"dtype", std::string("f32")}});
  const auto types =
      Loader::make({{"a", make_data(), {label()}}, {"b", make_data(), {other}}}, options(2));
  EXPECT_NE(types.status().text().find("i64[] in source 'a' and f32[] in source 'b'"),
            std::string::npos)
      << types.status().text();
  other.output = "z";
  const auto names =
      Loader::make({{"a", make_data(), {label()}}, {"b", make_data(), {other}}}, options(2));
  EXPECT_NE(names.status().text().find("source 'a' gives 'y' and source 'b' does not"),
            std::string::npos)
      << names.status().text();
}

}  // namespace
}  // namespace headrace

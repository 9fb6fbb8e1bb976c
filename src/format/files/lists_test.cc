// SPDX-License-Identifier: Apache-2.0
#include "format/files/lists.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "open/test_data.h"

namespace headrace {
namespace {

// Opens a list that lies beside a.jpg, b.JPEG and sub/c.png.
Result<Opened> open_list(const std::string& name, std::string_view content,
                         const std::string& root = "") {
  auto store = std::make_shared<MemoryStore>();
  store->put("d/a.jpg", "A");
  store->put("d/b.JPEG", "B");
  store->put("d/sub/c.png", "C");
  store->put("lists/x", "");
  store->put((root.empty() ? "d/" : "lists/") + name, content);
  return open_source({(root.empty() ? "d/" : "lists/") + name},
                     {.store = store, .root = root, .keep_sidecars = false});
}
std::vector<TestSample> read_list(const std::string& name, std::string_view content) {
  const auto opened = open_list(name, content);
  if (!opened.ok()) ADD_FAILURE() << opened.status().text();
  return opened.ok() ? read_samples(*opened.value().source).value() : std::vector<TestSample>();
}
Status error(const std::string& name, std::string_view content) {
  return open_list(name, content).status();
}
bool says(const Status& status, std::string_view part) {
  return status.text().find(part) != std::string::npos;
}

const std::vector<TestSample> kLabelled = {{"a", {{"cls", "3"}, {"jpg", "A"}}},
                                           {"b", {{"cls", "-1"}, {"jpg", "B"}}},
                                           {"sub/c", {{"cls", "0"}, {"png", "C"}}}};

TEST(TextList, has_an_optional_label) {
  EXPECT_EQ(read_list("l.txt", "a.jpg 3\nb.JPEG\t-1\n\nsub/c.png   0\r\n"), kLabelled);
  EXPECT_EQ(read_list("l.txt", "a.jpg\nb.JPEG").size(), 2u);
  EXPECT_EQ(open_list("l.txt", "a.jpg\n").value().source->schema().size(), 1u);
}

TEST(TextList, labels_are_all_there_or_none) {
  EXPECT_TRUE(says(error("l.txt", "a.jpg 1\nb.JPEG\n"), "d/l.txt: line 2"));
  EXPECT_TRUE(says(error("l.txt", "a.jpg\nb.JPEG 1\n"), "line 2"));
}

TEST(TextList, paths_may_hold_spaces) {
  auto store = std::make_shared<MemoryStore>();
  store->put("d/my cat.jpg", "A");
  store->put("d/l.txt", "my cat.jpg\n");
  const auto opened = open_source({"d/l.txt"}, {.store = store, .keep_sidecars = false}).value();
  EXPECT_EQ(read_samples(*opened.source).value()[0].key, "my cat");
}

TEST(Csv, columns_become_fields_of_their_kind) {
  const auto opened = open_list("l.csv",
                                "id,Path,label,score,name\n"
                                "1,a.jpg,3,0.5,\"says \"\"hi\"\", and\nleaves\"\n"
                                "2,b.JPEG,-1,2,x\r\n"
                                "\n"
                                "3,sub/c.png,,1e3,\n")
                          .value();
  const Schema& schema = opened.source->schema();
  EXPECT_EQ(schema[1], (Field{"label", Kind::kInt, Storage::kInline}));
  EXPECT_EQ(schema[2], (Field{"score", Kind::kFloat, Storage::kInline}));
  EXPECT_EQ(schema[3], (Field{"name", Kind::kText, Storage::kInline}));
  const auto got = read_samples(*opened.source).value();
  EXPECT_EQ(got[0].fields,
            (std::map<std::string, std::string>{{"id", "1"},
                                                {"jpg", "A"},
                                                {"label", "3"},
                                                {"score", "0.5"},
                                                {"name", "says \"hi\", and\nleaves"}}));
  EXPECT_EQ(got[2].fields.count("label"), 0u);
  EXPECT_EQ(got[2].fields.at("score"), "1000");
}

TEST(Csv, the_first_column_is_the_path_unless_one_is_named) {
  EXPECT_EQ(read_list("l.csv", "what,cls\na.jpg,3\n")[0].key, "a");
  EXPECT_EQ(read_list("l.tsv", "cls\timage\n3\ta.jpg\n")[0].fields.at("cls"), "3");
}

TEST(Csv, without_files_is_a_table) {
  const auto opened = open_list("t.csv", "x,y,z\n1, 2.5,\n,3,\n").value();
  const Schema& schema = opened.source->schema();
  ASSERT_EQ(schema.size(), 3u);
  EXPECT_EQ(schema[0], (Field{"x", Kind::kInt, Storage::kInline}));
  EXPECT_EQ(schema[1], (Field{"y", Kind::kFloat, Storage::kInline}));
  EXPECT_EQ(schema[2].name, "z");
  const auto got = read_samples(*opened.source).value();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].key, "t/00000000");
  EXPECT_EQ(got[0].fields, (std::map<std::string, std::string>{{"x", "1"}, {"y", "2.5"}}));
  EXPECT_EQ(got[1].fields, (std::map<std::string, std::string>{{"y", "3"}}));
  EXPECT_EQ(read_list("t.csv", "1,2\n3,4\n").size(), 2u);  // no header: no row less
}

TEST(Csv, problems_name_the_line) {
  EXPECT_TRUE(
      says(error("l.csv", "path,cls\na.jpg,3\nb.JPEG\n"), "line 3: 1 cells, the header has 2"));
  EXPECT_TRUE(
      says(error("l.csv", "path,cls\na.jpg,\"3\n"), "line 2: a quote that is never closed"));
  EXPECT_TRUE(
      says(error("l.csv", "path,cls\n\"a.jpg\"x,3\n"), "line 2: text after a closing quote"));
  EXPECT_TRUE(says(error("l.csv", "path,cls,cls\na.jpg,3,4\n"), "two columns are named 'cls'"));
  EXPECT_TRUE(says(error("l.csv", "path,cls\n,3\n"), "line 2: no path"));
  EXPECT_TRUE(says(error("l.csv", ""), "no header"));
  EXPECT_TRUE(says(error("l.csv", "path,jpg\na.jpg,3\n"), "'jpg'"));
  EXPECT_TRUE(says(error("l.csv", "path,cls\n"), "no sample"));
}

TEST(Csv, a_list_without_a_header_has_not_one_row_less) {
  const auto got = read_list("l.csv", "a.jpg,3\nb.JPEG,4\n");
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].fields, (std::map<std::string, std::string>{{"jpg", "A"}, {"cls", "3"}}));
  EXPECT_TRUE(says(error("l.csv", "sub/c,3\n"), "header=True, header=False"));
}

TEST(Csv, what_can_be_read_in_two_ways_is_refused) {
  EXPECT_TRUE(says(error("t.csv", "a;b,c\n1;2,3\n"), "separator=',' or separator=';'"));
}

TEST(Lists, a_byte_order_mark_is_no_part_of_a_path) {
  EXPECT_EQ(read_list("l.txt",
                      "\xef\xbb\xbf"
                      "a.jpg 3\n")[0]
                .key,
            "a");
  EXPECT_EQ(read_list("l.csv",
                      "\xef\xbb\xbf"
                      "path,cls\na.jpg,3\n")[0]
                .key,
            "a");
  EXPECT_EQ(read_list("l.jsonl", "\xef\xbb\xbf{\"path\": \"a.jpg\"}\n")[0].key, "a");
}

TEST(TextList, a_label_beyond_64_bits_is_an_error) {
  EXPECT_TRUE(says(error("l.txt", "a.jpg 99999999999999999999\n"), "line 1: a label beyond"));
}

TEST(Jsonl, true_beside_a_text_is_a_text) {
  const auto got = read_list("l.jsonl",
                             "{\"path\": \"a.jpg\", \"x\": true}\n"
                             "{\"path\": \"b.JPEG\", \"x\": \"maybe\"}\n");
  EXPECT_EQ(got[0].fields.at("x"), "true");
}

TEST(Csv, digits_beyond_64_bits_stay_text) {
  EXPECT_EQ(
      read_list("l.csv", "path,id\na.jpg,123456789012345678901234567890\n")[0].fields.at("id"),
      "123456789012345678901234567890");
}

TEST(Jsonl, members_become_fields_of_their_kind) {
  const auto opened =
      open_list(
          "l.jsonl",
          R"({"image": "a.jpg", "cls": 3, "score": 1, "cap": "\u00fc\ud83c\udf89\n", "box": [1, {"x": "]"}], "ok": true})"
          "\n\n"
          R"({"cls": null, "image": "b.JPEG", "score": 0.25})"
          "\n")
          .value();
  const auto got = read_samples(*opened.source).value();
  EXPECT_EQ(got[0].fields,
            (std::map<std::string, std::string>{{"jpg", "A"},
                                                {"cls", "3"},
                                                {"score", "1"},
                                                {"cap", "\xc3\xbc\xf0\x9f\x8e\x89\n"},
                                                {"box", R"([1, {"x": "]"}])"},
                                                {"ok", "1"}}));
  EXPECT_EQ(got[1].fields, (std::map<std::string, std::string>{{"jpg", "B"}, {"score", "0.25"}}));
}

TEST(Jsonl, problems_name_the_line) {
  const std::string good = "{\"path\": \"a.jpg\"}\n";
  for (const char* bad :
       {"[1]", "{\"path\": \"b\"", "{\"path\": }", "{\"path\" \"b\"}", "{\"path\": \"b\"} x", "{}",
        "{\"path\": 3}", "{\"path\": \"b\\q\"}", "{\"path\": \"\\ud800\"}",
        "{\"path\": \"b\", \"x\": [}}", "{\"path\": \"b\", \"x\": 1e}",
        "{\"path\": \"b\", \"x\": tru}", "{\"path\": \"\"}", "{\"path"}) {
    const Status s = error("l.jsonl", good + bad + "\n");
    EXPECT_EQ(s.code(), Code::kCorrupt) << bad;
    EXPECT_TRUE(says(s, "d/l.jsonl: line 2: ")) << bad << ": " << s.text();
    EXPECT_FALSE(says(s, "line 2: line")) << s.text();
  }
  EXPECT_TRUE(
      says(error("l.jsonl", good + "{\"path\": \"b\", \"x\": " + std::string(100, '[') + "}"),
           "too deep"));
  EXPECT_TRUE(
      says(error("l.jsonl", "{\"path\":\"a.jpg\",\"x\":\"t\"}\n{\"path\":\"b\",\"x\":[1]}\n"),
           "text in one line"));
}

TEST(Lists, a_first_file_that_is_not_there_names_the_places_tried) {
  const Status s = error("l.txt", "gone/z.jpg\n");
  EXPECT_EQ(s.code(), Code::kNotFound);
  EXPECT_TRUE(says(s, "d/gone/z.jpg") && says(s, "say root=")) << s.text();
  EXPECT_TRUE(says(error("l.txt", "d/a.jpg\n"), "give that as root"));
}

TEST(Lists, paths_are_relative_to_the_root_that_is_given) {
  const auto opened = open_list("l.txt", "a.jpg 3\n", "d");
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  EXPECT_EQ(read_samples(*opened.value().source).value()[0].fields.at("jpg"), "A");
}

TEST(Lists, a_file_without_an_extension_is_field_file) {
  auto store = std::make_shared<MemoryStore>();
  store->put("d/blob", "A");
  store->put("d/l.txt", "blob 1\n");
  const auto opened = open_source({"d/l.txt"}, {.store = store, .keep_sidecars = false}).value();
  EXPECT_EQ(read_samples(*opened.source).value()[0].fields.at("file"), "A");
}

TEST(Lists, the_fingerprint_knows_names_and_counts_not_the_list_itself) {
  const auto a = open_list("l.txt", "a.jpg 3\nb.JPEG 4\n").value();
  const auto b = open_list("m.csv", "path,cls\na.jpg,3\nb.JPEG,4\n").value();
  const auto c = open_list("l.txt", "b.JPEG 4\na.jpg 3\n").value();
  EXPECT_EQ(a.source->fingerprint(), b.source->fingerprint());
  EXPECT_NE(a.source->fingerprint(), c.source->fingerprint());
}

}  // namespace
}  // namespace headrace

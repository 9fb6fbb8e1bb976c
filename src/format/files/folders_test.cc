// SPDX-License-Identifier: Apache-2.0
#include "format/files/folders.h"

#include <gtest/gtest.h>

#include "open/test_data.h"
#include "storage/fault.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

Result<Opened> open_folder(const std::string& path) {
  return open_source({path}, {.keep_sidecars = false, .threads = 2});
}
bool says(const Status& status, std::string_view part) {
  return status.text().find(part) != std::string::npos;
}

TEST(ClassFolders, first_level_names_are_the_classes_in_order) {
  const TestFolder f;
  f.put("dog/x.JPEG", "dx");
  f.put("cat/b.jpg", "cb");
  f.put("cat/a.jpeg", "ca");
  f.put("cat/deep/er/c.jpg", "cc");
  f.put("cat/.hidden.jpg", "no");
  f.put(".git/config.jpg", "no");
  std::filesystem::create_directory(f / "ape");  // empty: keeps its number
  const auto opened = open_folder(f.path()).value();
  EXPECT_EQ(opened.format, "files");
  EXPECT_EQ(opened.classes, (std::vector<std::string>{"ape", "cat", "dog"}));
  EXPECT_EQ(read_samples(*opened.source).value(),
            (std::vector<TestSample>{{"cat/a", {{"cls", "1"}, {"jpg", "ca"}}},
                                     {"cat/b", {{"cls", "1"}, {"jpg", "cb"}}},
                                     {"cat/deep/er/c", {{"cls", "1"}, {"jpg", "cc"}}},
                                     {"dog/x", {{"cls", "2"}, {"jpg", "dx"}}}}));
}

TEST(ClassFolders, files_of_one_key_are_one_sample) {
  const TestFolder f;
  f.put("c/a.jpg", "1");
  f.put("c/a.b/x.jpg", "2");
  f.put("c/a.json", "{}");
  f.put("c/a-1.jpg", "3");
  EXPECT_EQ(read_samples(*open_folder(f.path()).value().source).value(),
            (std::vector<TestSample>{{"c/a-1", {{"cls", "0"}, {"jpg", "3"}}},
                                     {"c/a", {{"cls", "0"}, {"jpg", "1"}, {"json", "{}"}}},
                                     {"c/a.b/x", {{"cls", "0"}, {"jpg", "2"}}}}));
}

TEST(ClassFolders, two_files_for_one_field_are_an_error_that_names_both) {
  const TestFolder f;
  f.put("c/a.jpg", "1");
  f.put("c/a.txt", "2");
  f.put("c/a.TXT", "3");
  const Status s = open_folder(f.path()).status();
  EXPECT_TRUE(says(s, "c/a.TXT") && says(s, "c/a.txt")) << s.text();
}

TEST(ClassFolders, a_picture_is_a_sample_up_to_the_last_dot) {
  const TestFolder f;
  f.put("c/cat.0.jpg", "0");
  f.put("c/cat.1.jpg", "1");
  f.put("c/cat.1.nii.gz", "v");
  f.put("c/two.jpg", "2");
  f.put("c/two.JPEG", "3");
  f.put("c/notes.txt", "no");
  const auto opened = open_folder(f.path()).value();
  EXPECT_EQ(read_samples(*opened.source).value(),
            (std::vector<TestSample>{{"c/cat.0", {{"cls", "0"}, {"jpg", "0"}}},
                                     {"c/cat.1", {{"cls", "0"}, {"jpg", "1"}, {"nii.gz", "v"}}},
                                     {"c/two.JPEG", {{"cls", "0"}, {"jpg", "3"}}},
                                     {"c/two.jpg", {{"cls", "0"}, {"jpg", "2"}}}}));
  ASSERT_EQ(opened.notices.size(), 1u);
  EXPECT_NE(opened.notices[0].find("1 files are neither pictures"), std::string::npos);
}

TEST(ClassFolders, whose_names_are_splits_are_none) {
  const TestFolder f;
  f.put("train/c/a.jpg", "1");
  f.put("val/c/a.jpg", "1");
  const Status s = open_folder(f.path()).status();
  EXPECT_TRUE(says(s, "splits train, val") && says(s, "#train")) << s.text();
  EXPECT_EQ(open_folder(f.path() + "#val").value().source->size(), 1u);
}

TEST(ClassFolders, a_cls_file_beside_the_class_is_an_error) {
  const TestFolder f;
  f.put("c/a.cls", "1");
  EXPECT_TRUE(says(open_folder(f.path()).status(), "'cls'"));
}

TEST(ClassFolders, what_is_no_sample_is_told_of) {
  const TestFolder f;
  f.put("c/a.jpg", "1");
  f.put("c/README", "x");
  f.put("index.pkl", "x");
  const auto opened = open_folder(f.path()).value();
  EXPECT_EQ(opened.source->size(), 1u);
  ASSERT_EQ(opened.notices.size(), 2u);
  EXPECT_NE((opened.notices[0] + opened.notices[1]).find("index.pkl"), std::string::npos);
  EXPECT_NE((opened.notices[0] + opened.notices[1]).find("c/README"), std::string::npos);
}

TEST(ClassFolders, many_classes_on_threads_keep_their_order) {
  const TestFolder f;
  for (int c = 0; c < 50; ++c)
    for (int i = 0; i < 3; ++i)
      f.put("c" + std::to_string(100 + c) + "/" + std::to_string(i) + ".jpg", "x");
  const auto one = open_source({f.path()}, {.keep_sidecars = false, .threads = 1}).value();
  const auto four = open_source({f.path()}, {.keep_sidecars = false, .threads = 4}).value();
  EXPECT_EQ(one.source->size(), 150u);
  EXPECT_EQ(one.source->fingerprint(), four.source->fingerprint());
  EXPECT_EQ(read_samples(*one.source).value(), read_samples(*four.source).value());
}

TEST(ClassFolders, no_file_is_read_when_they_are_indexed) {
  const TestFolder f;
  for (int i = 0; i < 100; ++i) f.put("c/" + std::to_string(i) + ".jpg", "x");
  const auto store = std::make_shared<FaultStore>(TestFolder::store());
  ASSERT_TRUE(open_source({f.path()}, {.store = store, .keep_sidecars = false}).ok());
  EXPECT_EQ(store->reads(), 0u);
}

TEST(FlatFolder, has_no_cls) {
  const TestFolder f;
  f.put("b.jpg", "2");
  f.put("a.jpg", "1");
  f.put("a.txt", "one");
  EXPECT_EQ(
      read_samples(*open_folder(f.path()).value().source).value(),
      (std::vector<TestSample>{{"a", {{"jpg", "1"}, {"txt", "one"}}}, {"b", {{"jpg", "2"}}}}));
}

TEST(EmptyFolder, is_an_error) {
  const TestFolder f;
  const Status s = open_folder(f.path()).status();
  EXPECT_EQ(s.code(), Code::kCorrupt);
  EXPECT_TRUE(says(s, "no sample") && says(s, f.path())) << s.text();
  std::filesystem::create_directory(f / "class");
  EXPECT_FALSE(open_folder(f.path()).ok());
}

TEST(NormalExtension, knows_jpeg_in_all_its_spellings) {
  EXPECT_EQ(normal_extension("JPEG"), "jpg");
  EXPECT_EQ(normal_extension("jpeg"), "jpg");
  EXPECT_EQ(normal_extension("Jpg"), "jpg");
  EXPECT_EQ(normal_extension("left.JPEG"), "left.jpg");
  EXPECT_EQ(normal_extension("PNG"), "png");
}

}  // namespace
}  // namespace headrace

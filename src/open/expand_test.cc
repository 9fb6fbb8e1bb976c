// SPDX-License-Identifier: Apache-2.0
#include "open/expand.h"

#include <gtest/gtest.h>

#include "storage/memory.h"

namespace headrace {
namespace {

using Texts = std::vector<std::string>;

TEST(Braces, ranges_lists_and_nests) {
  EXPECT_EQ(expand_braces("t-{08..11}.tar").value(),
            (Texts{"t-08.tar", "t-09.tar", "t-10.tar", "t-11.tar"}));
  EXPECT_EQ(expand_braces("{1..3}").value(), (Texts{"1", "2", "3"}));
  EXPECT_EQ(expand_braces("{3..1}").value(), (Texts{"3", "2", "1"}));
  EXPECT_EQ(expand_braces("{a,b}/{0..1}").value(), (Texts{"a/0", "a/1", "b/0", "b/1"}));
  EXPECT_EQ(expand_braces("x{a,b{0..1},}y").value(), (Texts{"xay", "xb0y", "xb1y", "xy"}));
  EXPECT_EQ(expand_braces("plain").value(), (Texts{"plain"}));
  EXPECT_EQ(expand_braces("{x}").value(), (Texts{"{x}"}));
  EXPECT_EQ(expand_braces("t-{000000..000127}.tar").value().size(), 128u);
}

TEST(Braces, mistakes_are_told) {
  EXPECT_EQ(expand_braces("t-{0..3.tar").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(expand_braces("{0..99999999999}").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(expand_braces("{0..9999}{0..9999}").status().code(), Code::kInvalidArgument);
}

std::shared_ptr<MemoryStore> some_files() {
  auto store = std::make_shared<MemoryStore>();
  for (const char* name : {"d/b.tar", "d/a.tar", "d/a.tar.hridx", "d/.c.tar", "d/note.txt",
                           "e/a.tar", "f/x/1.jpg", "g/odd[1].tar"})
    store->put(name, "x");
  return store;
}

TEST(Globs, match_sorted_and_without_sidecars) {
  const auto store = some_files();
  EXPECT_EQ(expand_glob(*store, "d/*.tar").value(), (Texts{"d/a.tar", "d/b.tar"}));
  EXPECT_EQ(expand_glob(*store, "d/*").value(), (Texts{"d/a.tar", "d/b.tar", "d/note.txt"}));
  EXPECT_EQ(expand_glob(*store, "d/[a].tar").value(), (Texts{"d/a.tar"}));
  EXPECT_EQ(expand_glob(*store, "d/*.zip").status().code(), Code::kNotFound);
}

TEST(Urls, a_folder_of_shards_is_its_shards) {
  const auto store = some_files();
  EXPECT_EQ(expand_urls(*store, {"d"}).value(), (Texts{"d/a.tar", "d/b.tar"}));
  EXPECT_EQ(expand_urls(*store, {"d/"}).value(), (Texts{"d/a.tar", "d/b.tar"}));
  EXPECT_EQ(expand_urls(*store, {"f"}).value(), (Texts{"f"}));
  EXPECT_EQ(expand_urls(*store, {"file://e/a.tar", "d/{b,a}.tar"}).value(),
            (Texts{"e/a.tar", "d/b.tar", "d/a.tar"}));
  EXPECT_EQ(expand_urls(*store, {"g/odd[1].tar"}).value(), (Texts{"g/odd[1].tar"}));
  EXPECT_EQ(expand_urls(*store, {"{d,e}"}).value(), (Texts{"d/a.tar", "d/b.tar", "e/a.tar"}));
  EXPECT_EQ(expand_urls(*store, {}).status().code(), Code::kInvalidArgument);
}

TEST(RelativeNames, are_below_the_folder_all_share) {
  EXPECT_EQ(relative_names({"/a/b/x.tar", "/a/b/y.tar"}, false), (Texts{"x.tar", "y.tar"}));
  EXPECT_EQ(relative_names({"/a/b/x.tar", "/a/bc/y.tar"}, false), (Texts{"b/x.tar", "bc/y.tar"}));
  EXPECT_EQ(relative_names({"x.tar", "y.tar"}, false), (Texts{"x.tar", "y.tar"}));
  EXPECT_EQ(relative_names({"/x.tar"}, false), (Texts{"x.tar"}));
  EXPECT_EQ(relative_names({"/data/imagenet/train"}, true), (Texts{""}));
}

}  // namespace
}  // namespace headrace

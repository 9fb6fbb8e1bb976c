// SPDX-License-Identifier: Apache-2.0
//
// Our tar reader against Python's: the files of tests/make_golden_tars.py, in the
// folder that HEADRACE_GOLDEN_DIR names.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "index/names.h"
#include "open/open.h"

namespace headrace {
namespace {

struct Member {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string name;
  auto operator<=>(const Member&) const = default;
};

// What tarfile lists, less the members that make no sample, extensions in lower case.
std::vector<Member> theirs(const std::filesystem::path& list) {
  std::ifstream in(list);
  std::vector<Member> members;
  for (Member m; in >> m.offset >> m.bytes && in.get() && std::getline(in, m.name);) {
    const NameParts name = split_name(m.name);
    if (name.key.empty() || name.key.ends_with('/') || name.extension.empty()) continue;
    m.name = std::string(name.key) + '.' + lower_case(name.extension);
    members.push_back(m);
  }
  return members;
}

std::vector<Member> ours(const Source& source) {
  std::vector<Member> members;
  Request request;
  for (uint64_t s = 0; s < source.size(); ++s)
    for (uint32_t f = 0; f < source.schema().size(); ++f) {
      EXPECT_TRUE(source.needs({.sample = s, .fields = {&f, 1}, .want_key = true}, request).ok());
      for (const Unit& unit : request.units)
        members.push_back(
            {unit.offset, unit.stored_bytes, request.key + '.' + source.schema()[f].name});
    }
  std::sort(members.begin(), members.end());
  return members;
}

TEST(Golden, tar_files_of_other_tools_read_as_they_read_them) {
  const char* folder = std::getenv("HEADRACE_GOLDEN_DIR");  // NOLINT(concurrency-mt-unsafe)
  if (folder == nullptr)
    GTEST_SKIP() << "HEADRACE_GOLDEN_DIR is not set: tests/make_golden_tars.py makes it";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".tar") continue;
    SCOPED_TRACE(entry.path().string());
    const auto opened = open_source({entry.path().string()}, {.keep_sidecars = false});
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    std::filesystem::path list = entry.path();
    EXPECT_EQ(ours(*opened.value().source), theirs(list.replace_extension(".members")));
    ++files;
  }
  EXPECT_GT(files, 10u);
}

}  // namespace
}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "storage/file_system.h"

#include <gtest/gtest.h>

#include "storage/test_folder.h"

namespace headrace {
namespace {

TEST(FileSystems, those_of_this_machine_are_near_and_those_behind_a_network_are_not) {
  EXPECT_EQ(file_system(0xEF53).name, "ext4");
  EXPECT_TRUE(file_system(0xEF53).is_near);
  EXPECT_EQ(file_system(0x0BD00BD0).name, "Lustre");
  EXPECT_FALSE(file_system(0x0BD00BD0).is_near);
  EXPECT_TRUE(file_system(0x0BD00BD0).announces);
  // As a 32-bit kernel word with its sign: 0xFF534D42.
  EXPECT_EQ(file_system(static_cast<int32_t>(0xFF534D42)).name, "CIFS");
  EXPECT_EQ(file_system(12345).name, "another");
  EXPECT_FALSE(file_system(12345).is_near);
}

TEST(FileSystems, memory_is_tmpfs_and_what_is_not_there_is_unknown) {
  EXPECT_EQ(file_system_of("/dev/shm").name, "tmpfs");
  EXPECT_EQ(file_system_of("/no/such/path").name, "another");
}

TEST(FileSystems, a_stale_file_is_opened_again_once) {
  for (const int error : {0, ESTALE, EIO}) {
    int reads = 0;
    int opened = 0;
    const Status status = read_again_if_stale(
        [&](int& e) -> Status {
          ++reads;
          e = error;
          return error == 0 || reads > 1 ? Status() : unavailable("no");
        },
        [&] { ++opened; });
    EXPECT_EQ(opened, error == ESTALE ? 1 : 0);
    EXPECT_EQ(status.ok(), error != EIO);
  }
}

TEST(FileSystems, a_disk_that_fails_is_named_with_its_place) {
  // The kernel answers a read of memory that is not there with EIO.
  Buffer out;
  const Status status = TestFolder::store()->read_at("/proc/self/mem", 0, 10, out);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.text().find("the disk or its server failed"), std::string::npos)
      << status.text();
  EXPECT_EQ(status.place().file, "/proc/self/mem");
}

TEST(FileSystems, many_ranges_of_a_file_at_once_are_what_is_there) {
  const TestFolder folder;
  std::string content;
  for (int i = 0; i < 400'000; ++i) content += std::to_string(i);
  const std::string path = folder.put("a", content);
  std::vector<ReadRequest> requests;
  size_t good = 0;
  for (uint64_t at = 0; at + 70'000 < content.size(); at += 100'000)
    requests.push_back({.path = path, .offset = at, .length = 70'000, .done = [&](ReadRequest&& r) {
                          good += r.status.ok() &&
                                  as_text(r.into.bytes()) == content.substr(r.offset, r.length);
                        }});
  const size_t count = requests.size();
  TestFolder::store()->read(requests);
  EXPECT_EQ(good, count);
}

}  // namespace
}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Which files are one sample, where data lie as plain files (folders, lists, images of folders).
//
//   cat.0.jpg  cat.0.json  cat.1.jpg     samples "cat.0" (jpg, json) and "cat.1" (jpg)
//   cat.jpg  cat.png                     two pictures of one stem: samples "cat.jpg", "cat.png"
//   notes.txt  Thumbs.db                 beside pictures: left out, and counted
//   a.x  a.y  b.x                        without any picture: samples "a" and "b", by the stem
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// Samples of a list of files, as numbers of that list.
struct FileGroups {
  std::vector<uint32_t> files;        // of all samples, one after the other
  std::vector<uint32_t> first{0};     // sample s has files [first[s], first[s + 1])
  std::vector<bool> keeps_extension;  // of sample s: its key is all of the first file's path
  std::vector<uint32_t> left_out;     // files that are part of no sample
  bool has_twins = false;             // some sample keeps its extension

  size_t size() const { return keeps_extension.size(); }
  std::span<const uint32_t> of(size_t sample) const {
    return std::span(files).subspan(first[sample], first[sample + 1] - first[sample]);
  }
};

// Samples come in the order of their pictures (or of their first files), a sample's picture first.
// `with_pictures`: the data set has some, here or elsewhere.
FileGroups group_files(std::span<const std::string_view> paths, bool with_pictures);

bool is_picture_path(std::string_view path);

}  // namespace headrace

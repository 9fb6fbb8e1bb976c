// SPDX-License-Identifier: Apache-2.0
#include "format/files/grouping.h"

#include <algorithm>
#include <numeric>

#include "index/names.h"
#include "index/schema.h"

namespace headrace {
namespace {

// What desktops leave behind, and nobody trains on.
bool is_litter(std::string_view path) {
  const std::string name = lower_case(path.substr(path.rfind('/') + 1));
  return name == "thumbs.db" || name == "desktop.ini";
}

// A sample on its way: its place is that of the file that leads it.
struct Group {
  uint32_t lead = 0;
  bool keeps_extension = false;
  std::vector<uint32_t> files = {};
};

// Files of one stem, in the order of the list.
class StemFiles {
 public:
  StemFiles(std::span<const std::string_view> paths, bool with_pictures)
      : paths_(paths), with_pictures_(with_pictures) {}

  void make_groups(std::span<const uint32_t> files, std::vector<Group>& groups,
                   std::vector<uint32_t>& left_out) const {
    std::vector<uint32_t> pictures, others;
    for (const uint32_t file : files) {
      const bool is_nothing = split_stem(paths_[file]).extension.empty() || is_litter(paths_[file]);
      if (is_nothing)
        left_out.push_back(file);
      else
        (is_picture_path(paths_[file]) ? pictures : others).push_back(file);
    }
    if (pictures.empty() && with_pictures_) {
      left_out.insert(left_out.end(), others.begin(), others.end());
    } else if (pictures.empty() && !others.empty()) {
      groups.push_back({others.front(), false, others});
    }
    for (const uint32_t picture : pictures) {
      Group group{picture, pictures.size() > 1, {picture}};
      group.files.insert(group.files.end(), others.begin(), others.end());
      groups.push_back(std::move(group));
    }
  }

 private:
  const std::span<const std::string_view> paths_;
  const bool with_pictures_;
};

}  // namespace

bool is_picture_path(std::string_view path) {
  return is_picture_extension(split_stem(path).extension);
}

FileGroups group_files(std::span<const std::string_view> paths, bool with_pictures) {
  // Files of one stem mostly, but not always, stand together: "a.jpg", "a.jpg.bak.png", "a.json".
  std::vector<uint32_t> order(paths.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&paths](uint32_t a, uint32_t b) {
    const int differ = split_stem(paths[a]).key.compare(split_stem(paths[b]).key);
    return differ != 0 ? differ < 0 : a < b;
  });
  const StemFiles stems(paths, with_pictures);
  std::vector<Group> groups;
  FileGroups out;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() &&
           split_stem(paths[order[end]]).key == split_stem(paths[order[begin]]).key)
      ++end;
    stems.make_groups(std::span(order).subspan(begin, end - begin), groups, out.left_out);
    begin = end;
  }
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.lead < b.lead; });
  std::sort(out.left_out.begin(), out.left_out.end());
  for (const Group& group : groups) {
    out.files.insert(out.files.end(), group.files.begin(), group.files.end());
    out.first.push_back(static_cast<uint32_t>(out.files.size()));
    out.keeps_extension.push_back(group.keeps_extension);
    out.has_twins |= group.keeps_extension;
  }
  return out;
}

}  // namespace headrace

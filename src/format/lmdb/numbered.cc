// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/numbered.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace headrace {
namespace {

constexpr std::string_view kCount = "num-samples";
constexpr size_t kMostFields = 64;
constexpr size_t kMostDigits = 18;

// Texts that such data sets have beside their pictures.
Kind kind_of(std::string_view name) {
  return name == "label" || name == "text" ? Kind::kText : kind_of_extension(name);
}

}  // namespace

uint32_t NumberedEntries::field(std::string_view name) {
  const auto known = std::find(fields_.begin(), fields_.end(), name);
  if (known != fields_.end()) return static_cast<uint32_t>(known - fields_.begin());
  fields_.emplace_back(name);
  counts_.push_back(0);
  return static_cast<uint32_t>(fields_.size() - 1);
}

void NumberedEntries::see(std::string_view key, const PartValue& value) {
  if (others_ || key == kCount) return;
  const size_t dash = key.rfind('-');
  const std::string_view digits = dash == std::string_view::npos ? "" : key.substr(dash + 1);
  const bool fits = dash != std::string_view::npos && dash > 0 && !digits.empty() &&
                    digits.size() <= kMostDigits &&
                    digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!fits || fields_.size() > kMostFields) {
    others_ = true;
    entries_ = {};
    return;
  }
  Entry entry{.field = field(key.substr(0, dash)), .value = value};
  std::from_chars(digits.data(), digits.data() + digits.size(), entry.number);
  ++counts_[entry.field];
  entries_.push_back(entry);
}

bool NumberedEntries::fit() const {
  return !others_ && fields_.size() > 1 &&
         std::all_of(counts_.begin(), counts_.end(),
                     [this](uint64_t count) { return count == counts_[0]; });
}

Result<PartPointer> NumberedEntries::finish(PartHead head) {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.number != b.number ? a.number < b.number : a.field < b.field;
  });
  PartBuilder part(std::move(head));
  std::vector<uint32_t> numbers;
  for (const std::string& name : fields_)
    numbers.push_back(part.field(name, kind_of(name), Storage::kExtent));
  for (size_t i = 0; i < entries_.size(); ++i) {
    part.add_extent(numbers[entries_[i].field], entries_[i].value);
    if (i + 1 == entries_.size() || entries_[i + 1].number != entries_[i].number)
      part.end_sample(fmt::format("{:09}", entries_[i].number));
  }
  return part.finish();
}

}  // namespace headrace

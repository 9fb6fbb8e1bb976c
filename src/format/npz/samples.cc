// SPDX-License-Identifier: Apache-2.0
#include "format/npz/samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/npz/names.h"

namespace headrace {
namespace {

// Plain bytes: as pack marked them, else by the name; a number is an array in an .npz.
Kind kind_of_bytes(const ZipMember& zip, std::string_view field) {
  Kind kind = kind_of_extension(field);
  if (zip.kind <= static_cast<uint16_t>(Kind::kArray)) kind = static_cast<Kind>(zip.kind);
  const bool is_typed = kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kTokens ||
                        kind == Kind::kArray || kind == Kind::kNpy;
  return is_typed ? Kind::kBytes : kind;
}

}  // namespace

PartValue npz_unit(const ZipMember& zip, uint32_t file) {
  if (!zip.is_deflated()) return {.offset = zip.data, .stored = zip.size, .file = file};
  return {.offset = zip.header,
          .stored = zip.data - zip.header + zip.stored + zip.descriptor,
          .decoded = zip.size,
          .encoding = kNpzInflate,
          .file = file};
}

bool are_samples(const std::vector<NpzMember>& members) {
  return !members.empty() && std::all_of(members.begin(), members.end(), [](const NpzMember& m) {
    return m.name.find('/') != std::string::npos;
  });
}

Status NpzSamples::add_member(std::string_view field, const NpzMember& member, uint32_t file) {
  auto it = known_.find(field);
  const bool may_be_number = member.number && !arrays_.contains(field);
  if (it == known_.end()) {
    Known known{.is_array = member.is_array, .is_text = member.text.has_value()};
    if (may_be_number) known.number = member.number->dtype;
    it = known_.emplace(field, known).first;
  }
  Known& known = it->second;
  if (known.is_array != member.is_array)
    return corrupt(fmt::format("'{}' is an array in one place and plain bytes in another", field))
        .at(member.zip.header);
  if (member.text.has_value() != known.is_text)
    return corrupt(fmt::format("'{}' is a text in one place and an array in another", field))
        .at(member.zip.header);
  if (member.text) {
    const Kind kind = member.header->type.kind == 'U' ? Kind::kText : Kind::kBytes;
    part_.add_bytes(part_.field(field, kind, Storage::kInline), as_bytes(*member.text));
  } else if (!known.number) {
    const Kind kind = member.is_array ? Kind::kNpy : kind_of_bytes(member.zip, field);
    part_.add_extent(part_.field(field, kind, Storage::kExtent), npz_unit(member.zip, file));
  } else if (!may_be_number || *known.number != member.number->dtype) {
    arrays_.emplace(field);
  } else {
    const uint32_t f = part_.field({.name = std::string(field),
                                    .kind = member.number->is_float ? Kind::kFloat : Kind::kInt,
                                    .storage = Storage::kInline,
                                    .dtype = known.number});
    if (member.number->is_float)
      part_.add_float(f, member.number->number);
    else
      part_.add_int(f, member.number->integer);
  }
  return {};
}

Status NpzSamples::add_whole(const std::vector<NpzMember>& members, uint32_t file,
                             std::string_view key) {
  for (const NpzMember& member : members) {
    HEADRACE_TRY(add_member(member.name, member, file));
    Known& known = known_.find(member.name)->second;
    if (known.seen_in == part_.samples())
      return corrupt(fmt::format("two members have the name '{}'", member.name))
          .at(member.zip.header);
    known.seen_in = part_.samples();
  }
  part_.end_sample(key);
  return {};
}

Status NpzSamples::add_samples(const std::vector<NpzMember>& members, uint32_t file) {
  // Samples in the order of their first members; those of one need not lie together.
  std::unordered_map<std::string_view, size_t> numbers;
  std::vector<std::vector<size_t>> samples;
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string_view name = members[i].name;
    const auto [it, is_new] = numbers.emplace(name.substr(0, name.rfind('/')), samples.size());
    if (is_new) samples.emplace_back();
    samples[it->second].push_back(i);
  }
  for (const std::vector<size_t>& sample : samples) {
    std::set<std::string_view> names;
    for (const size_t i : sample) {
      const NpzMember& member = members[i];
      if (!names.insert(member.name).second)
        return corrupt(fmt::format("two members have the name '{}'", member.name))
            .at(member.zip.header);
      const NpzName name = split_npz_name(member.name);
      if (!name.field.empty()) HEADRACE_TRY(add_member(name.field, member, file));
    }
    part_.end_sample(split_npz_name(members[sample.front()].name).key);
  }
  return {};
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "format/pickle/data.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/pickle/writer.h"

namespace headrace {
namespace {

using Type = PickleNode::Type;

bool is_list(const PickleNode& node) {
  return node.type == Type::kList || node.type == Type::kTuple;
}

bool is_name(const PickleNode& node) {
  return node.type == Type::kText || node.type == Type::kBytes;
}

Status not_read(std::string_view name, std::string_view what) {
  return unsupported(fmt::format("'{}' holds {}", name, what));
}

Status check_plain(std::string_view name, const NpyHeader& header) {
  if (!header.type.dtype())
    return not_read(name, fmt::format("an array of '{}', which is not read", header.type.descr));
  if (header.fortran_order)
    return not_read(
        name, "an array in Fortran order, which is not read; save np.ascontiguousarray() of it");
  if (header.type.big_endian && header.type.item_bytes > 1)
    return not_read(
        name,
        "big-endian numbers, which are not read; save them little-endian (x.astype(x.dtype."
        "newbyteorder('<')))");
  return {};
}

// The most general of plain values; nothing where they do not go together.
std::optional<Kind> kind_of_scalar(const PickleNode& node) {
  switch (node.type) {
    case Type::kBool:
    case Type::kInt:
      return Kind::kInt;
    case Type::kFloat:
      return Kind::kFloat;
    case Type::kText:
      return Kind::kText;
    case Type::kBytes:
      return Kind::kBytes;
    default:
      return std::nullopt;
  }
}

}  // namespace

void name_bare_array(Pickle& pickle) {
  if (pickle.nodes[pickle.root].type != Type::kArray) return;
  const auto key = static_cast<uint32_t>(pickle.nodes.size());
  pickle.nodes.push_back({.type = Type::kText, .text = "data"});
  pickle.nodes.push_back(
      {.type = Type::kDict, .items = static_cast<uint32_t>(pickle.items.size())});
  pickle.items.push_back({key, pickle.root});
  pickle.root = key + 1;
}

bool is_pickle_data(const Pickle& pickle) {
  const PickleNode& root = pickle.nodes[pickle.root];
  if (root.type != Type::kDict) return false;
  const std::vector<uint32_t>& items = pickle.items[root.items];
  bool has_array = false;
  bool all_lists = !items.empty();
  bool named_as_files = false;
  bool has_keys = false;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    const PickleNode& value = pickle.nodes[items[i + 1]];
    has_array |= value.type == Type::kArray && pickle.items[value.items].size() == 3 &&
                 !pickle.items[pickle.nodes[pickle.items[value.items][0]].items].empty();
    all_lists &= is_list(value) && pickle.items[value.items].size() >= 2;
    has_keys |= pickle.nodes[items[i]].text == kPickleKeys && is_list(value);
    named_as_files |= pickle.nodes[items[i]].text.find_first_of("./") != std::string_view::npos;
  }
  return has_array || has_keys || (all_lists && !named_as_files);
}

Result<std::vector<PickleData::Entry>> PickleData::entries() const {
  const PickleNode& root = pickle_.nodes[pickle_.root];
  if (root.type != Type::kDict) return corrupt("the pickle holds no dict");
  const std::vector<uint32_t>& items = pickle_.items[root.items];
  std::vector<Entry> out;
  for (size_t i = 0; i < items.size(); i += 2) {
    if (!is_name(pickle_.nodes[items[i]])) return corrupt("a key of the dict is no text");
    const std::string name(pickle_.nodes[items[i]].text);
    if (out.size() == kMaxFields)
      return corrupt(fmt::format("a dict of more than {} keys is no sample", kMaxFields));
    // As in Python, a key that comes again is set anew.
    const auto known =
        std::find_if(out.begin(), out.end(), [&](const Entry& e) { return e.name == name; });
    if (known != out.end())
      known->value = &pickle_.nodes[items[i + 1]];
    else
      out.push_back({name, &pickle_.nodes[items[i + 1]]});
  }
  return out;
}

bool PickleData::has_keys() const {
  const PickleNode& root = pickle_.nodes[pickle_.root];
  if (root.type != Type::kDict) return false;
  const std::vector<uint32_t>& items = pickle_.items[root.items];
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    if (pickle_.nodes[items[i]].text == kPickleKeys && is_list(pickle_.nodes[items[i + 1]]))
      return true;
  return false;
}

uint64_t PickleData::length_of(const PickleNode& node) const {
  if (is_list(node)) return pickle_.items[node.items].size();
  const Result<PickleArray> array = pickle_array(pickle_, node);
  return array.ok() && !array.value().header.shape.empty() ? array.value().header.shape[0] : 0;
}

Result<uint64_t> PickleData::count_rows() const {
  HEADRACE_ASSIGN(const std::vector<Entry> all, entries());
  const Entry* first = nullptr;
  uint64_t rows = 0;
  uint64_t columns = 0;
  for (const Entry& entry : all) {
    if (!is_list(*entry.value) && entry.value->type != Type::kArray) continue;
    if (entry.value->type == Type::kArray)
      if (Status s = pickle_array(pickle_, *entry.value).status(); !s.ok())
        return s.with(fmt::format("'{}'", entry.name));
    const uint64_t n = length_of(*entry.value);
    if (first == nullptr) {
      first = &entry;
      rows = n;
    }
    if (n != rows)
      return invalid(
          fmt::format("'{}' has {} rows, '{}' has {}", entry.name, n, first->name, rows));
    ++columns;
  }
  if (first == nullptr || rows == 0) return invalid("there is no list or array with an element");
  // Each cell has at least a byte of its own, unless keys share a value.
  if (rows > bytes_.size() / columns)
    return corrupt("rows without bytes, or the same list under many keys");
  return rows;
}

// In place where the bytes are those of the file.
PartValue PickleData::place(Bytes data, std::string_view encoded) const {
  const std::string_view stored = encoded.empty() ? as_text(data) : encoded;
  PartValue value{.stored = stored.size(), .file = file_};
  if (!stored.empty())
    value.offset = static_cast<uint64_t>(as_bytes(stored).data() - bytes_.data());
  if (encoded.empty()) return value;
  value.decoded = data.size();
  value.encoding = kPickleLatin1;
  return value;
}

Result<uint32_t> PickleData::array_field(const std::string& name, const NpyHeader& header) {
  HEADRACE_TRY(check_plain(name, header));
  std::vector<int64_t> shape;
  for (const uint64_t n : header.shape) shape.push_back(static_cast<int64_t>(n));
  const auto [it, is_new] = shapes_.known.try_emplace(name, shape);
  std::vector<int64_t>& known = it->second;
  if (!is_new) {
    if (known.size() != shape.size())
      return not_read(name, fmt::format("arrays of {} and of {} axes", known.size(), shape.size()));
    for (size_t a = 0; a < shape.size(); ++a)
      if (known[a] != shape[a] && known[a] != kVaries) {
        known[a] = kVaries;
        shapes_.changed = true;
      }
    if (std::count(known.begin(), known.end(), kVaries) > 1)
      return not_read(name, "arrays that differ in more than one axis; save them as .npz");
  }
  return part_.field(
      {.name = name, .kind = Kind::kArray, .dtype = header.type.dtype(), .shape = known});
}

Result<uint32_t> PickleData::scalar_field(const std::string& name,
                                          std::span<const PickleNode* const> values) {
  std::optional<Kind> kind;
  for (const PickleNode* value : values) {
    if (value->type == Type::kNone) continue;
    const std::optional<Kind> one = kind_of_scalar(*value);
    if (!one)
      return not_read(name, value->type == Type::kBigInt ? "an integer beyond 64 bits"
                                                         : "values that are no numbers, text, "
                                                           "bytes or arrays");
    const bool both_numbers = kind && *kind >= Kind::kInt && *one >= Kind::kInt &&
                              *kind <= Kind::kFloat && *one <= Kind::kFloat;
    if (both_numbers)
      kind = std::max(*kind, *one);
    else if (kind && *kind != *one)
      return not_read(name, "values of several types");
    else
      kind = one;
  }
  const Kind found = kind.value_or(Kind::kInt);
  if (found != Kind::kBytes) return part_.field(name, found, Storage::kInline);
  const Kind by_name = kind_of_extension(name);
  const bool is_number = by_name == Kind::kInt || by_name == Kind::kFloat;
  return part_.field(name, is_number ? Kind::kBytes : by_name, Storage::kExtent);
}

}  // namespace headrace

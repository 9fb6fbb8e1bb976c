// SPDX-License-Identifier: Apache-2.0
//
// A pickle as a list of files: a dict path -> label, or a list of (path, label)
// pairs or of paths.  A label is
//
//   an int, a float or a str          field cls (a str stays text: it gets no number)
//   a list or tuple of such           several values of cls
//   a dict of such                    a field per key
//   None                              no value

#include <fmt/format.h>

#include "format/files/lists.h"
#include "format/pickle/unpickle.h"

namespace headrace {
namespace {

using Type = PickleNode::Type;

// One thread at a time.
class PickleRows {
 public:
  PickleRows(const Pickle& pickle, const RowFunction& row) : pickle_(pickle), row_(row) {}

  Status run() {
    const PickleNode& root = pickle_.nodes[pickle_.root];
    if (root.type != Type::kDict && root.type != Type::kList && root.type != Type::kTuple)
      return corrupt("the pickle holds neither a dict path -> label nor a list of (path, label)");
    const std::vector<uint32_t>& items = pickle_.items[root.items];
    const size_t step = root.type == Type::kDict ? 2 : 1;
    for (size_t i = 0; i < items.size(); i += step) {
      const uint64_t entry = i / step + 1;
      const Status status = root.type == Type::kDict ? pair(entry, items[i], items[i + 1])
                                                     : element(entry, pickle_.nodes[items[i]]);
      if (!status.ok())
        return status.message().starts_with("line") ? status
                                                    : status.with(fmt::format("entry {}", entry));
    }
    return {};
  }

 private:
  Status element(uint64_t entry, const PickleNode& node) {
    if (node.type == Type::kText || node.type == Type::kBytes) return row_({entry, node.text, {}});
    if (node.type != Type::kTuple && node.type != Type::kList)
      return corrupt("neither a path nor (path, label)");
    const std::vector<uint32_t>& items = pickle_.items[node.items];
    if (items.size() != 2) return corrupt("not a pair (path, label)");
    return pair(entry, items[0], items[1]);
  }

  Status pair(uint64_t entry, uint32_t key, uint32_t label) {
    const PickleNode& path = pickle_.nodes[key];
    if (path.type != Type::kText && path.type != Type::kBytes)
      return corrupt("the path is no text");
    cells_.clear();
    const PickleNode& node = pickle_.nodes[label];
    if (node.type == Type::kDict) {
      const std::vector<uint32_t>& items = pickle_.items[node.items];
      for (size_t i = 0; i < items.size(); i += 2) {
        const PickleNode& name = pickle_.nodes[items[i]];
        if (name.type != Type::kText) return corrupt("a label's key is no text");
        HEADRACE_TRY(add(name.text, pickle_.nodes[items[i + 1]]));
      }
    } else if (node.type == Type::kList || node.type == Type::kTuple) {
      for (const uint32_t item : pickle_.items[node.items])
        HEADRACE_TRY(add("cls", pickle_.nodes[item]));
    } else {
      HEADRACE_TRY(add("cls", node));
    }
    return row_({entry, path.text, cells_});
  }

  Status add(std::string_view column, const PickleNode& node) {
    Cell cell{.column = column};
    switch (node.type) {
      case Type::kNone:
        return {};
      case Type::kBool:
      case Type::kInt:
        cell.integer = node.integer;
        cell.number = static_cast<double>(node.integer);
        break;
      case Type::kFloat:
        cell.type = Cell::Type::kFloat;
        cell.number = node.number;
        break;
      case Type::kText:
      case Type::kBytes:
        cell.type = Cell::Type::kText;
        cell.text = node.text;
        break;
      case Type::kBigInt:
        return corrupt("an integer label beyond 64 bits");
      default:
        return corrupt("a label that is no scalar");
    }
    cells_.push_back(cell);
    return {};
  }

  const Pickle& pickle_;
  const RowFunction& row_;
  std::vector<Cell> cells_;
};

}  // namespace

Status read_pickle(Bytes list, const RowFunction& row) {
  HEADRACE_ASSIGN(const Pickle pickle, unpickle(list));
  return PickleRows(pickle, row).run();
}

}  // namespace headrace

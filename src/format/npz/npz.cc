// SPDX-License-Identifier: Apache-2.0
//
// NumPy's .npz: a zip archive of .npy arrays, one file or a folder of them.
//
//   file.npz            rows where every array has the same length n > 1, else one sample
//   folder of .npz      one sample a file, in one shard with a table of files
//   <key>/<field>       where all members are called so: the samples that they name
//   …#rows #whole #samples    says which is meant
//   …#train             of arrays train_x, train_y, test_x, …: x and y of that split, by rows
//
//   whole, samples      arrays are .npy values that describe themselves, arrays without axes are
//                       numbers in the index, members that are no .npy are plain bytes
//   rows                numbers and texts of one axis in the index, else arrays
//
// Stored members are read where they lie; a deflated one is a unit that opens as a whole, its
// checksum verified.  So do rows of arrays that are big-endian or in Fortran order.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/parallel.h"
#include "format/files/folders.h"
#include "format/npz/samples.h"
#include "format/npz/writer.h"
#include "format/records.h"
#include "format/splits.h"
#include "format/typed_values.h"
#include "index/names.h"
#include "index/sidecar.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffixes[] = {".npz"};
constexpr size_t kStretch =
    1024;                     // files of a folder that are looked at before their samples go in
constexpr int kMaxLooks = 4;  // folders in folders that are looked into for an .npz

enum class Reading { kAuto, kRows, kWhole, kSamples, kSplit };

// Any other word is a split: arrays whose names carry it, by rows.
Reading parse_reading(std::string_view part) {
  if (part.empty()) return Reading::kAuto;
  if (part == "rows") return Reading::kRows;
  if (part == "whole") return Reading::kWhole;
  if (part == "samples") return Reading::kSamples;
  return Reading::kSplit;
}

// The splits that the names of arrays carry, where all carry one and there are several.
std::vector<std::string> splits_of(const std::vector<NpzMember>& members) {
  std::vector<std::string> splits;
  for (const NpzMember& member : members) {
    const std::string split = split_in_name(member.name);
    if (split.empty() || without_split(member.name).empty()) return {};
    if (std::find(splits.begin(), splits.end(), split) == splits.end()) splits.push_back(split);
  }
  if (splits.size() < 2) splits.clear();
  return splits;
}

// Only the arrays of one split stay, without it in their names.
Status choose_split(std::string_view split, std::vector<NpzMember>& members) {
  const std::vector<std::string> splits = splits_of(members);
  if (std::find(splits.begin(), splits.end(), split) == splits.end()) {
    std::string known;
    for (const std::string& name : splits) known.append(known.empty() ? " #" : ", #").append(name);
    return invalid(
        fmt::format("'#{}' is no way to read this .npz;{}{} #rows, #whole and #samples "
                    "are",
                    split, known, known.empty() ? "" : ","));
  }
  std::erase_if(members,
                [split](const NpzMember& member) { return split_in_name(member.name) != split; });
  for (NpzMember& member : members) member.name = without_split(member.name);
  return {};
}

bool is_npz(std::string_view path) {
  return lower_case(path).ends_with(kSuffixes[0]);
}

std::string without_suffix(std::string_view path) {
  return std::string(path.substr(0, path.size() - (is_npz(path) ? kSuffixes[0].size() : 0)));
}

// One file or a folder of them.  One thread at a time.
class NpzIndexer {
 public:
  NpzIndexer(const ShardInput& shard, Reading reading, const FileTree& tree, NameSet& arrays)
      : shard_(shard),
        reading_(reading),
        tree_(tree),
        part_(PartHead{.format = "npz",
                       .shard_bytes = shard.info.is_folder ? 0 : shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .folders = tree.folders,
                       .has_files = shard.info.is_folder,
                       .has_openings = true}),
        samples_(part_, arrays) {}

  Result<PartPointer> run(const std::string& notice) {
    if (!notice.empty()) part_.head().notices.push_back(notice);
    if (shard_.info.is_folder) {
      HEADRACE_TRY(folder());
    } else {
      NpzFile npz(shard_);
      HEADRACE_TRY(npz.open());
      const std::string_view name =
          std::string_view(shard_.info.path).substr(shard_.info.path.rfind('/') + 1);
      HEADRACE_TRY(add(npz, 0, without_suffix(name)));
    }
    note_left_out();
    return part_.finish();
  }

 private:
  struct Opened {
    ShardInput input;
    NpzFile npz;
    Opened(const ShardInput& shard, FileInfo info)
        : input{shard.store, std::move(info), 1, shard.cancel}, npz(input) {}
  };

  Status folder() {
    const std::vector<std::string>& files = tree_.files;
    for (size_t begin = 0; begin < files.size(); begin += kStretch) {
      std::vector<std::unique_ptr<Opened>> opened(std::min(kStretch, files.size() - begin));
      HEADRACE_TRY(parallel_for(opened.size(), shard_.threads, [&](size_t i) -> Status {
        if (shard_.cancelled()) return cancelled("indexing was cancelled");
        const std::string path = join_path(shard_.info.path, files[begin + i]);
        HEADRACE_ASSIGN(FileInfo info, shard_.store.stat(path));
        opened[i] = std::make_unique<Opened>(shard_, std::move(info));
        const Status status = opened[i]->npz.open();
        return status.ok() ? status : status.in_file(path);
      }));
      for (size_t i = 0; i < opened.size(); ++i) {
        const std::string& file = files[begin + i];
        if (Status s = add(opened[i]->npz, part_.add_file(file), without_suffix(file)); !s.ok())
          return s.in_file(opened[i]->input.info.path);
        opened[i].reset();
      }
    }
    return {};
  }

  Status add(NpzFile& npz, uint32_t file, const std::string& name) {
    if (shard_.cancelled()) return cancelled("indexing was cancelled");
    HEADRACE_TRY(add_members(npz, file, name));
    for (const auto& [member, why] : npz.left_out()) left_out_.emplace(member, why);
    return {};
  }

  Status add_members(NpzFile& npz, uint32_t file, const std::string& name) {
    Reading reading = reading_;
    if (reading == Reading::kSplit) {
      HEADRACE_TRY(choose_split(shard_.info.part, npz.members()));
      reading = Reading::kRows;
    }
    if (reading == Reading::kAuto) HEADRACE_TRY(decide(npz, file, reading));
    if (reading == Reading::kSamples) {
      if (!are_samples(npz.members()) && !npz.members().empty())
        return invalid("'#samples' wants members that are all called '<key>/<field>'");
      return samples_.add_samples(npz.members(), file);
    }
    if (reading == Reading::kWhole) {
      npz.leave_out(&no_value);
      return samples_.add_whole(npz.members(), file, name);
    }
    HEADRACE_TRY(npz.inspect_all());
    if (reading_ == Reading::kRows) npz.leave_out(&single_value);
    leave_out_unreadable_rows(npz);
    if (Status s = can_be_rows(npz.members()); !s.ok())
      return s.with("'#rows' wants arrays of one length");
    return add_npz_rows(npz, file, name + '/', part_);
  }

  // Of an array that was looked at and that no field holds: why.  Texts without axes are values.
  static std::string no_value(const NpzMember& member) {
    if (!member.is_array || !member.header || member.header->type.dtype() || member.text) return {};
    const NpyType& type = member.header->type;
    if (type.is_text()) return "an array of texts; '#rows' has one of one axis as texts";
    return fmt::format("an array of '{}'", type.descr);
  }
  static std::string single_value(const NpzMember& member) {
    return member.header && member.header->shape.empty() ? "a single value, and '#rows' was said"
                                                         : "";
  }
  // Rows of these are not read; where the other arrays are rows, they are.
  static void leave_out_unreadable_rows(NpzFile& npz) {
    const auto is_good = [](const NpzMember& m) {
      return !m.header || m.header->shape.empty() || has_readable_rows(*m.header);
    };
    const std::vector<NpzMember>& members = npz.members();
    if (std::none_of(members.begin(), members.end(), [&](const NpzMember& m) {
          return m.header && !m.header->shape.empty() && has_readable_rows(*m.header);
        }))
      return;
    npz.leave_out([&](const NpzMember& m) {
      return is_good(m) ? std::string() : fmt::format("an array of '{}'", m.header->type.descr);
    });
  }

  void note_left_out() {
    if (left_out_.empty()) return;
    std::string shown;
    size_t more = left_out_.size();
    for (const auto& [name, why] : left_out_) {
      if (shown.size() > 400) break;
      shown += fmt::format("{}'{}' ({})", shown.empty() ? "" : ", ", name, why);
      --more;
    }
    if (more > 0) shown += fmt::format(" and {} more", more);
    part_.head().notices.push_back("left out: " + shown);
  }

  // One sample because of a single value beside arrays of one length.
  void note_single(const std::vector<NpzMember>& members) {
    const NpzMember* single = nullptr;
    std::optional<uint64_t> rows;
    for (const NpzMember& member : members) {
      if (!member.is_array || !member.header) return;
      if (member.header->shape.empty()) {
        single = &member;
      } else if (!rows) {
        rows = member.header->shape[0];
      } else if (*rows != member.header->shape[0]) {
        return;
      }
    }
    if (single == nullptr || rows.value_or(0) < 2) return;
    part_.head().notices.push_back(fmt::format(
        "the file is one sample, because '{}' is a single value; write '#rows' behind the name to "
        "have a sample for each of the {} rows, without it",
        single->name, *rows));
  }

  // One sample where some arrays look like rows: `X`, `y`, and the names of the classes beside
  // them.
  void note_lengths(const std::vector<NpzMember>& members) {
    const NpzMember& first = members.front();
    const uint64_t rows = first.header->shape[0];
    const auto is_other = [rows](const NpzMember& m) { return m.header->shape[0] != rows; };
    const auto other = std::find_if(members.begin(), members.end(), is_other);
    const auto others = std::count_if(members.begin(), members.end(), is_other);
    if (rows < 2 || other == members.end() || members.size() - static_cast<size_t>(others) < 2)
      return;
    part_.head().notices.push_back(
        fmt::format("the file is one sample, because '{}' has {} rows and '{}' has {}; to have a "
                    "sample for each row, save the arrays of one length in a file of their own",
                    first.name, rows, other->name, other->header->shape[0]));
  }

  // A folder's files are samples: pictures and masks of one size would else be cut into lines.
  Status decide(NpzFile& npz, uint32_t file, Reading& out) {
    const std::vector<NpzMember>& members = npz.members();
    out = are_samples(members) ? Reading::kSamples : Reading::kWhole;
    const bool is_folder = shard_.info.is_folder;
    if (out == Reading::kSamples || members.empty() || (is_folder && file > 0)) return {};
    // Where stored members tell, deflated ones need not be inflated.
    for (const NpzMember& member : members)
      if (!member.is_array || (member.header && member.header->shape.empty())) {
        if (!is_folder) note_single(members);
        return {};
      }
    if (!is_folder) HEADRACE_TRY(npz.inspect_all());
    for (const NpzMember& member : members)
      if (!member.header || member.header->shape.empty()) return {};
    if (!is_folder) leave_out_unreadable_rows(npz);
    const bool are_rows = can_be_rows(members).ok() && members.front().header->shape[0] >= 2;
    if (const std::vector<std::string> splits = splits_of(members);
        !are_rows && !is_folder && !splits.empty())
      return invalid(fmt::format("{}; '#whole' is one sample with all arrays",
                                 which_split(shard_.info.path, splits).message()))
          .in_file(shard_.info.path);
    if (!are_rows && !is_folder) note_lengths(members);
    if (!are_rows) return {};
    const uint64_t rows = members.front().header->shape[0];
    if (is_folder) {
      part_.head().notices.push_back(fmt::format(
          "every file is one sample; write '#rows' behind the folder where each of the {} rows "
          "of '{}' is one",
          rows, tree_.files.front()));
    } else {
      out = Reading::kRows;
      part_.head().notices.push_back(fmt::format(
          "all arrays have {} rows: each is a sample; write '#whole' behind the name where the "
          "file is one sample",
          rows));
    }
    return {};
  }

  const ShardInput& shard_;
  const Reading reading_;
  const FileTree& tree_;
  PartBuilder part_;
  NpzSamples samples_;
  std::map<std::string, std::string> left_out_;  // and why
};

// What a user should hear of them; "" where there are none.
std::string leave_out_others(FileTree& tree) {
  std::vector<std::string> others;
  for (const std::string& file : tree.files)
    if (!is_npz(file)) others.push_back(file);
  std::erase_if(tree.files, [](const std::string& file) { return !is_npz(file); });
  if (others.empty()) return {};
  return fmt::format("{} files are no .npz and are left out, the first '{}'", others.size(),
                     others.front());
}

Result<PartPointer> index(const ShardInput& shard) {
  const Reading reading = parse_reading(shard.info.part);
  FileTree tree;
  std::string left_out;
  if (shard.info.is_folder) {
    HEADRACE_TRY(list_tree(shard, tree));
    left_out = leave_out_others(tree);
  }
  // Whether a name is a number everywhere is known only at the end: else once more.
  NameSet arrays;
  for (;;) {
    const size_t known = arrays.size();
    Result<PartPointer> part = NpzIndexer(shard, reading, tree, arrays).run(left_out);
    if (!part.ok()) return part.status().in_file(shard.info.path);
    if (arrays.size() == known) return part;
  }
}

// Files that may lie beside data and say something about it.
bool is_about_data(std::string_view name) {
  static constexpr std::string_view kAbout[] = {"",    "md",  "txt",  "json",
                                                "csv", "tsv", "yaml", "yml"};
  const std::string extension = lower_case(split_stem(name).extension);
  return std::find(std::begin(kAbout), std::end(kAbout), extension) != std::end(kAbout);
}

// A folder whose files are all .npz, or whose first folder is such a one.  What pack wrote are
// shards of their own, which have an index each.
Result<std::vector<std::string>> claim(const Store& store, const std::string& folder,
                                       std::span<const FileInfo> entries) {
  std::vector<FileInfo> listed(entries.begin(), entries.end());
  for (int look = 0; look < kMaxLooks; ++look) {
    std::vector<std::string> files;
    NameSet keys;
    std::string first_folder;
    bool is_packed = false;
    for (const FileInfo& entry : listed) {
      const std::string_view name = std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
      if (name.starts_with('.') || name.ends_with(kSidecarSuffix)) continue;
      if (name == kPackManifest) {
        is_packed = true;
      } else if (entry.is_folder) {
        if (first_folder.empty()) first_folder = entry.path;
      } else if (is_npz(name)) {
        files.push_back(entry.path);
      } else if (is_about_data(name)) {
        keys.insert(std::string(split_stem(entry.path).key));
      } else {
        return std::vector<std::string>();
      }
    }
    // A file that has the key of an array is of the same sample: plain files, then.
    for (const std::string& file : files)
      if (keys.contains(split_stem(file).key)) return std::vector<std::string>();
    if (!files.empty()) {
      if (is_packed && look == 0) return files;
      return std::vector<std::string>{folder};
    }
    if (first_folder.empty()) break;
    HEADRACE_ASSIGN(listed, store.list(first_folder));
  }
  return std::vector<std::string>();
}

// Zip archives are many things: one whose first member is an array, or has our mark.
bool sniff(Bytes head) {
  if (head.size() < kZipLocalBytes || load_le<uint32_t>(head) != kZipLocal) return false;
  const uint64_t name = load_le<uint16_t>(head.subspan(26));
  const uint64_t extra = load_le<uint16_t>(head.subspan(28));
  const std::string_view rest = as_text(head.subspan(kZipLocalBytes));
  if (rest.substr(0, name).ends_with(".npy")) return true;
  return extra >= 4 && rest.size() >= name + 4 &&
         load_le<uint16_t>(as_bytes(rest.substr(name))) == kKindExtra;
}

Status decode_unit(const Store&, const std::string&, const Unit& unit, Bytes stored,
                   Buffer& decoded) {
  if (unit.encoding == kNpzInflate || unit.encoding == kNpzInflateConvert) {
    HEADRACE_TRY(open_zip_member(stored, unit.decoded_bytes, decoded));
  } else if (unit.encoding == kNpzConvert) {
    decoded.resize(stored.size());
    std::copy(stored.begin(), stored.end(), decoded.data());
  } else {
    return corrupt(fmt::format("npz has no encoding {}", unit.encoding)).at(0);
  }
  if (unit.encoding == kNpzInflate) {
    // Of a large one only now is seen what it holds.
    if (!as_text(decoded.bytes()).starts_with(kNpyMagic)) return {};
    return parse_npy(decoded.bytes(), decoded.size()).status();
  }
  HEADRACE_ASSIGN(const NpyHeader header, parse_npy(decoded.bytes(), decoded.size()));
  return normalise_npy(header, decoded.span().subspan(header.data));
}

}  // namespace

extern constinit const Format npz_format{
    .name = "npz",
    .doc =
        "NumPy's .npz, stored or deflated: a file is one sample, or one for each row of its "
        "arrays; a folder of them",
    .suffixes = kSuffixes,
    .takes_folders = true,
    .takes_parts = true,
    .sniff = sniff,
    .claim = claim,
    .index = index,
    .create = make_npz_writer,
    .can_hold = numpy_can_hold,
    .decode_unit = decode_unit,
};

}  // namespace headrace

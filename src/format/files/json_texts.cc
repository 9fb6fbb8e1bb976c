// SPDX-License-Identifier: Apache-2.0
#include "format/files/json_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "format/files/json_line.h"
#include "format/files/packed.h"

namespace headrace {
namespace {

constexpr uint64_t kPiece = BlockStream::kBlockBytes;
constexpr size_t kLongestLine = size_t{1} << 30;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Of a local file one piece after the other; of a server several are under way.
unsigned pieces_ahead(const Store& store, const std::string& path) {
  return store.cost(path).in_caller ? 0 : 4;
}

}  // namespace

JsonTexts::JsonTexts(std::shared_ptr<const Store> store, const FileInfo& file, Range range,
                     std::string member, std::unique_ptr<Inflater> inflater)
    : store_(std::move(store)),
      path_(file.path),
      size_(file.bytes),
      range_(range),
      member_(std::move(member)),
      inflater_(std::move(inflater)),
      stream_(*store_, path_, size_, {.ahead = pieces_ahead(*store_, path_)}),
      // One byte before: a line begins at `begin` where that is a line end.
      read_(range.begin == 0 ? 0 : range.begin - 1),
      held_at_(read_) {}

Result<std::unique_ptr<JsonTexts>> JsonTexts::open(std::shared_ptr<const Store> store,
                                                   const FileInfo& file, Range range,
                                                   std::string member) {
  HEADRACE_ASSIGN(std::unique_ptr<Inflater> inflater, inflater_of(file.path));
  if (inflater != nullptr && range.begin != 0)
    return invalid("a packed file is read from its beginning").in_file(file.path);
  if (inflater != nullptr) range.end = kWholeFile;
  if (range.begin > range.end || range.begin > file.bytes)
    return invalid(fmt::format("no range of its {} bytes", file.bytes)).in_file(file.path);
  return std::unique_ptr<JsonTexts>(
      new JsonTexts(std::move(store), file, range, std::move(member), std::move(inflater)));
}

Status JsonTexts::next(uint64_t bytes, JsonTextBatch& out) {
  out.bytes.clear();
  out.ends.clear();
  out.bad.clear();
  while (out.bytes.size() < bytes) {
    std::string_view text;
    HEADRACE_TRY(line(text));
    if (ended_) break;
    if (!is_blank(text)) add(text, out);
  }
  return {};
}

Status JsonTexts::first_line(std::string_view& out) {
  do {
    HEADRACE_TRY(line(out));
  } while (!ended_ && is_blank(out));
  if (ended_) out = {};
  return {};
}

uint64_t JsonTexts::used_bytes() const {
  const uint64_t used = held_at_ + front_;
  if (inflater_ == nullptr) return used > range_.begin ? used - range_.begin : 0;
  const uint64_t opened = held_at_ + held_.size();
  const auto share = opened == 0 ? 0.0 : static_cast<double>(used) / static_cast<double>(opened);
  return static_cast<uint64_t>(static_cast<double>(read_ - piece_.size()) * share);
}

void JsonTexts::add(std::string_view text, JsonTextBatch& out) {
  const size_t before = out.bytes.size();
  if (const Status status = text_of(text, out.bytes); !status.ok()) {
    out.bytes.resize(before);
    out.bad.push_back({lines_, texts_, std::string(status.message())});
    return;
  }
  out.ends.push_back(out.bytes.size());
  ++texts_;
}

Status JsonTexts::text_of(std::string_view line, std::string& out) const {
  if (line.find_first_not_of(" \t") < line.size() && line[line.find_first_not_of(" \t")] == '[')
    return corrupt("a JSON list; one object a line is wanted");
  JsonLine parser(line, member_.find('.') != std::string::npos);
  std::vector<Cell> cells;
  HEADRACE_TRY(parser.members(cells));
  const auto at = std::find_if(cells.begin(), cells.end(),
                               [this](const Cell& cell) { return cell.column == member_; });
  if (at == cells.end()) return corrupt(fmt::format("it has no text '{}'", member_));
  if (at->type != Cell::Type::kText) return corrupt(fmt::format("its '{}' is no text", member_));
  const size_t valid = valid_utf8_prefix(as_bytes(at->text));
  if (valid < at->text.size())
    return corrupt(fmt::format("its '{}' is not UTF-8 from byte {} on", member_, valid));
  out += at->text;
  return {};
}

Status JsonTexts::line(std::string_view& out) {
  if (first_) {
    first_ = false;
    if (range_.begin > 0) {  // the end of a line that began before
      std::string_view ignored;
      HEADRACE_TRY(line(ignored));
      lines_ = 0;
    }
  }
  const uint64_t begin = held_at_ + front_;
  if (begin >= range_.end) return ended_ = true, Status();
  size_t end = held_.find('\n', front_);
  while (end == std::string::npos && !source_end_) {
    const size_t looked = held_.size() - front_;
    if (looked > kLongestLine)
      return corrupt(fmt::format("line {} is longer than {} bytes: are these JSON lines?",
                                 lines_ + 1, kLongestLine))
          .in_file(path_);
    HEADRACE_TRY(more());
    end = held_.find('\n', looked);
  }
  if (front_ == held_.size()) return ended_ = true, Status();
  const size_t stop = std::min(end, held_.size());
  out = std::string_view(held_).substr(front_, stop - front_);
  front_ = std::min(stop + 1, held_.size());
  if (begin == 0 && out.starts_with(kByteOrderMark)) out.remove_prefix(kByteOrderMark.size());
  ++lines_;
  return {};
}

// Moves what is left to the front and adds a piece to it.
Status JsonTexts::more() {
  held_.erase(0, front_);
  held_at_ += front_;
  front_ = 0;
  if (inflater_ != nullptr) return inflate();
  if (read_ == size_) return source_end_ = true, Status();
  HEADRACE_TRY(read());
  held_ += as_text(piece_);
  return {};
}

// The next piece, up to a multiple of kPiece, so that what comes later begins with one.
Status JsonTexts::read() {
  const uint64_t n = std::min(kPiece - read_ % kPiece, size_ - read_);
  HEADRACE_TRY(stream_.bytes(read_, n, piece_));
  read_ += n;
  return {};
}

// One step, whatever few bytes open to.
Status JsonTexts::inflate() {
  if (piece_.empty() && read_ < size_) HEADRACE_TRY(read());
  const size_t before = held_.size();
  held_.resize(before + kPiece);
  MutableBytes room(reinterpret_cast<std::byte*>(held_.data()) + before, kPiece);
  const uint64_t at = read_ - piece_.size();
  const Status status = inflater_->step(piece_, room);
  held_.resize(held_.size() - room.size());
  if (!status.ok()) return status.at(at).in_file(path_);
  if (held_.size() > before || !piece_.empty() || read_ < size_) return {};
  source_end_ = true;
  if (inflater_->at_end() || size_ == 0) return {};
  return corrupt("the packed file is cut short: its stream has no end").at(read_).in_file(path_);
}

Result<uint64_t> count_line_ends(const Store& store, const FileInfo& file, uint64_t end) {
  BlockStream stream(store, file.path, file.bytes, {.ahead = pieces_ahead(store, file.path)});
  uint64_t count = 0;
  for (uint64_t at = 0; at < end;) {
    const uint64_t n = std::min(kPiece, end - at);
    Bytes piece;
    HEADRACE_TRY(stream.bytes(at, n, piece));
    count += static_cast<uint64_t>(std::count(piece.begin(), piece.end(), std::byte{'\n'}));
    at += n;
  }
  return count;
}

}  // namespace headrace

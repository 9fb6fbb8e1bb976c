// SPDX-License-Identifier: Apache-2.0
#include "index/token_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/mutex.h"
#include "base/per_process.h"
#include "index/part.h"
#include "storage/lru.h"

namespace headrace {
namespace {

constexpr size_t kKeptFiles = 256;  // whose documents are in memory
constexpr uint64_t kMostLength = uint64_t{1} << 30;
constexpr uint64_t kMostNumbers = 16'384;

enum Fields : uint32_t { kTokensField, kPositions, kLossMask, kBorders };

Schema make_schema(DType dtype, uint64_t seq_len, bool has_documents) {
  const auto length = static_cast<int64_t>(seq_len);
  Schema out{{.name = "tokens", .kind = Kind::kTokens, .dtype = dtype, .shape = {length + 1}}};
  if (!has_documents) return out;
  out.push_back(
      {.name = "positions", .kind = Kind::kArray, .dtype = DType::kI32, .shape = {length}});
  out.push_back(
      {.name = "loss_mask", .kind = Kind::kArray, .dtype = DType::kU8, .shape = {length}});
  out.push_back(
      {.name = "cu_seqlens", .kind = Kind::kArray, .dtype = DType::kI32, .shape = {kVaries}});
  return out;
}

// Where documents begin in a window, as it goes from needs() to assemble(): u32 each, ascending,
// from 1 to seq_len.
uint32_t border(Bytes borders, size_t i) {
  return load_le<uint32_t>(borders.subspan(4 * i));
}

// `numbers`: 0, 1, 2, …
void write_positions(Bytes borders, std::span<const int32_t> numbers, MutableBytes out) {
  const size_t count = borders.size() / 4;
  const size_t length = out.size() / 4;
  size_t at = 0;
  for (size_t b = 0; b <= count; ++b) {
    const size_t end = b < count ? std::min<size_t>(border(borders, b), length) : length;
    const size_t known = std::min(end - at, numbers.size());
    if (known > 0) std::memcpy(out.data() + 4 * at, numbers.data(), 4 * known);
    for (size_t position = known; at + position < end; ++position)
      store_le(out.subspan(4 * (at + position)), static_cast<int32_t>(position));
    at = end;
  }
}

void write_mask(Bytes borders, MutableBytes out) {
  std::fill(out.begin(), out.end(), std::byte{1});
  for (size_t b = 0; b < borders.size() / 4; ++b) out[border(borders, b) - 1] = std::byte{0};
}

Status write_borders(Bytes borders, uint64_t seq_len, ValueRoom& room) {
  size_t inside = borders.size() / 4;
  if (inside > 0 && border(borders, inside - 1) == seq_len) --inside;  // the last target's
  HEADRACE_ASSIGN(const MutableBytes out, room.room(4 * (inside + 2)));
  store_le<int32_t>(out, 0);
  for (size_t b = 0; b < inside; ++b)
    store_le(out.subspan(4 * (b + 1)), static_cast<int32_t>(border(borders, b)));
  store_le(out.subspan(4 * (inside + 1)), static_cast<int32_t>(seq_len));
  return {};
}

// Immutable, hence thread-safe; the documents of files are kept behind a lock.
class TokenWindowSource final : public Source {
 public:
  TokenWindowSource(TokenFiles files, uint64_t seq_len, bool permutes)
      : files_(std::move(files)),
        seq_len_(seq_len),
        permutes_(permutes),
        width_(size_of(files_.dtype)),
        schema_(make_schema(files_.dtype, seq_len, files_.documents != nullptr)) {
    Hasher hasher;
    hasher.add("token windows").add(seq_len_).add(dtype_name(files_.dtype));
    if (permutes_) hasher.add("permuted documents").add(kPoolTokens).add(kPoolDocuments);
    for (const TokenFile& file : files_.files) {
      add_blocks(windows_of(file));
      first_window_.push_back(first_window_.back() + windows_of(file));
      hasher.add(file.name).add(file.tokens);
    }
    fingerprint_ = hasher.finish();
    if (files_.documents) numbers_.resize(std::min(seq_len_, kMostNumbers));
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }

  uint64_t windows_of(const TokenFile& file) const {
    return file.tokens == 0 ? 0 : (file.tokens - 1) / seq_len_;
  }

  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return first_window_.back(); }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return fingerprint_; }

  Status needs(const SampleAsk& ask, Request& out) const override {
    if (ask.sample >= size()) return internal("no such window");
    const Place place = place_of(ask.sample);
    out.clear();
    if (permutes_) return permuted_needs(ask, place, out);
    bool has_borders = false;
    for (const uint32_t field : ask.fields) {
      if (field >= schema_.size()) return internal("no such field");
      if (field == kTokensField) {
        out.pieces.push_back({static_cast<uint32_t>(out.units.size()), 0, window_bytes()});
        out.units.push_back(unit_of(place, 1));
      } else {
        if (!std::exchange(has_borders, true)) HEADRACE_TRY(find_borders(place, out.inline_bytes));
        out.pieces.push_back({kInlineUnit, 0, out.inline_bytes.size()});
      }
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    if (ask.want_key) out.key = key(ask.sample);
    return {};
  }

  bool run_of(uint64_t sample, Unit& run) const override {
    if (permutes_) return false;
    const Place place = place_of(sample);
    const uint64_t first = place.window / block_windows() * block_windows();
    const uint64_t all = windows_of(files_.files[place.file]);
    run = unit_of({place.file, first}, std::min(block_windows(), all - first));
    return true;
  }

  uint64_t row_bytes(uint32_t field) const override {
    return field == kTokensField && !permutes_ ? window_bytes() : 0;
  }
  Status row_places(uint32_t field, std::span<const uint64_t> samples,
                    std::span<RowPlace> out) const override {
    if (field != kTokensField) return internal("no such row");
    for (size_t i = 0; i < samples.size(); ++i) {
      if (samples[i] >= size()) return internal("no such window");
      const Place place = place_of(samples[i]);
      out[i] = {static_cast<uint32_t>(place.file),
                files_.files[place.file].begin + place.window * seq_len_ * width_};
    }
    return {};
  }

  bool assembles(uint32_t field) const override { return field != kTokensField; }
  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    (void)ask;
    for (const AssembleOutput& output : outputs) {
      const Bytes borders = output.pieces.empty() ? Bytes() : output.pieces[0].bytes;
      if (output.field == kBorders) {
        HEADRACE_TRY(write_borders(borders, seq_len_, *output.value));
      } else {
        const uint64_t bytes = output.field == kPositions ? 4 * seq_len_ : seq_len_;
        HEADRACE_ASSIGN(const MutableBytes out, output.value->room(bytes));
        output.field == kPositions ? write_positions(borders, numbers_, out)
                                   : write_mask(borders, out);
      }
    }
    return {};
  }

  const Store& store() const override { return *files_.store; }
  std::string file_path(uint32_t file) const override {
    return file < files_.files.size() ? files_.files[file].path : std::string();
  }
  std::string key(uint64_t sample) const override {
    const Place place = place_of(sample);
    return fmt::format("{}/{}", files_.files[place.file].name, place.window);
  }

 private:
  struct Place {
    size_t file = 0;
    uint64_t window = 0;  // of the file
  };

  Place place_of(uint64_t sample) const {
    const auto next = std::upper_bound(first_window_.begin(), first_window_.end(), sample);
    const auto file = static_cast<size_t>(next - first_window_.begin()) - 1;
    return {file, sample - first_window_[file]};
  }
  uint64_t window_bytes() const { return (seq_len_ + 1) * width_; }
  uint64_t block_windows() const {
    return std::clamp<uint64_t>(kBlockBytes / (seq_len_ * width_), 1, kMaxBlockSamples);
  }

  Unit unit_of(const Place& place, uint64_t windows) const {
    const uint64_t bytes = (windows * seq_len_ + 1) * width_;
    return {.file = static_cast<uint32_t>(place.file),
            .offset = files_.files[place.file].begin + place.window * seq_len_ * width_,
            .stored_bytes = bytes,
            .decoded_bytes = bytes};
  }

  void add_blocks(uint64_t windows) {
    for (uint64_t left = windows; left > 0;) {
      const uint64_t taken = std::min(left, block_windows());
      blocks_.samples.push_back(static_cast<uint32_t>(taken));
      left -= taken;
    }
    blocks_.bytes += windows * seq_len_ * width_;
  }

  Result<std::shared_ptr<const DocumentBegins>> documents_of(size_t file) const {
    Kept& kept = *kept_;
    MutexLock lock(kept.mu);
    if (const auto* known = kept.begins.find(file)) return *known;
    HEADRACE_ASSIGN(const auto begins, files_.documents(file));
    kept.begins.insert(file, begins);
    return begins;
  }

  Result<std::shared_ptr<const DocumentPools>> pools_of(size_t file) const {
    Kept& kept = *kept_;
    {
      MutexLock lock(kept.mu);
      if (const auto* known = kept.pools.find(file)) return *known;
    }
    HEADRACE_ASSIGN(const auto begins, documents_of(file));
    auto made = std::make_shared<const DocumentPools>(begins, files_.files[file].tokens);
    MutexLock lock(kept.mu);
    kept.pools.insert(file, made);
    return std::shared_ptr<const DocumentPools>(std::move(made));
  }

  // A piece for each part of a document; borders as find_borders() gives them.
  Status permuted_needs(const SampleAsk& ask, const Place& place, Request& out) const {
    HEADRACE_ASSIGN(const auto pools, pools_of(place.file));
    thread_local std::vector<DocumentPart> parts;
    kept_->permuted.find(*pools, place.file, ask.epoch_draws, place.window * seq_len_, seq_len_ + 1,
                         parts);
    uint64_t at = 0;
    for (const DocumentPart& part : parts) {
      if (part.is_start && at > 0) {
        const auto border = static_cast<uint32_t>(at);
        const auto* bytes = reinterpret_cast<const std::byte*>(&border);
        out.inline_bytes.insert(out.inline_bytes.end(), bytes, bytes + 4);
      }
      at += part.tokens;
    }
    if (at != seq_len_ + 1)
      return corrupt(fmt::format("the documents of the index end {} tokens too early",
                                 seq_len_ + 1 - at))
          .in_file(files_.files[place.file].path);
    for (const uint32_t field : ask.fields) {
      if (field >= schema_.size()) return internal("no such field");
      if (field == kTokensField)
        add_parts(parts, static_cast<uint32_t>(place.file), out);
      else
        out.pieces.push_back({kInlineUnit, 0, out.inline_bytes.size()});
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    if (ask.want_key) out.key = key(ask.sample);
    return {};
  }

  void add_parts(const std::vector<DocumentPart>& parts, uint32_t file, Request& out) const {
    for (size_t i = 0; i < parts.size(); ++i) {
      const uint64_t bytes = parts[i].tokens * width_;
      out.pieces.push_back({static_cast<uint32_t>(out.units.size()), 0, bytes, i > 0});
      out.units.push_back({.file = file,
                           .offset = files_.files[file].begin + parts[i].begin * width_,
                           .stored_bytes = bytes,
                           .decoded_bytes = bytes});
    }
  }

  Status find_borders(const Place& place, std::vector<std::byte>& out) const {
    HEADRACE_ASSIGN(const auto begins, documents_of(place.file));
    const uint64_t first = place.window * seq_len_;
    auto at = std::upper_bound(begins->begin(), begins->end(), first);
    for (; at != begins->end() && *at - first <= seq_len_; ++at) {
      const auto border = static_cast<uint32_t>(*at - first);
      const auto* bytes = reinterpret_cast<const std::byte*>(&border);
      // An empty document begins where the next one does.
      if (out.size() >= 4 && load_le<uint32_t>(Bytes(out).last(4)) == border) continue;
      out.insert(out.end(), bytes, bytes + 4);
    }
    return {};
  }

  struct Kept {
    Mutex mu;
    Lru<size_t, std::shared_ptr<const DocumentBegins>> begins HEADRACE_GUARDED_BY(mu){kKeptFiles};
    Lru<size_t, std::shared_ptr<const DocumentPools>> pools HEADRACE_GUARDED_BY(mu){kKeptFiles};
    PermutedDocuments permuted;
  };

  const TokenFiles files_;
  const uint64_t seq_len_;
  const bool permutes_;
  const uint64_t width_;
  const Schema schema_;
  std::vector<uint64_t> first_window_{0};
  Blocks blocks_;
  Hash128 fingerprint_;
  std::vector<int32_t> numbers_;  // positions in a document, as they are copied
  const PerProcess<Kept> kept_{[] { return std::make_unique<Kept>(); }};
};

}  // namespace

Result<TokenWindows> make_token_windows(TokenFiles files, uint64_t seq_len,
                                        bool permute_documents) {
  if (seq_len == 0 || seq_len > kMostLength)
    return invalid(fmt::format("seq_len is {}; 1 to {} is wanted", seq_len, kMostLength));
  if (files.files.empty()) return invalid("no files of tokens are named");
  if (permute_documents && !files.documents)
    return invalid(
        "permute_documents=True needs files that say where documents begin, Megatron's .bin and "
        ".idx: leave it out, or write them with headrace tokenize");
  TokenWindows out;
  uint64_t most = 0;
  for (const TokenFile& file : files.files) {
    const uint64_t windows = file.tokens == 0 ? 0 : (file.tokens - 1) / seq_len;
    out.unused_tokens += file.tokens - (windows == 0 ? 0 : windows * seq_len + 1);
    out.short_files += windows == 0;
    most = std::max(most, file.tokens);
  }
  if (out.short_files == files.files.size())
    return invalid(
        fmt::format("no file has the {} tokens of one window, the largest has {}: take a "
                    "smaller seq_len",
                    seq_len + 1, most));
  out.source =
      std::make_shared<const TokenWindowSource>(std::move(files), seq_len, permute_documents);
  return out;
}

}  // namespace headrace

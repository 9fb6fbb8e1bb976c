// SPDX-License-Identifier: Apache-2.0
#include "index/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "index/combined.h"

namespace headrace {
namespace {

std::vector<SourcePointer> sources_of(const std::vector<JoinPart>& parts) {
  std::vector<SourcePointer> out;
  for (const JoinPart& part : parts) out.push_back(part.source);
  return out;
}

// Immutable, hence thread-safe.
class Joined final : public Source {
 public:
  explicit Joined(std::vector<JoinPart> parts)
      : parts_(std::move(parts)), files_(sources_of(parts_)), blocks_(parts_[0].source->blocks()) {
    Hasher hasher;
    hasher.add("join");
    blocks_.bytes = 0;
    for (const JoinPart& part : parts_) {
      const Hash128 own = part.source->fingerprint();
      hasher.add(own.high).add(own.low);
      blocks_.bytes += part.source->blocks().bytes;
      blocks_.shared |= part.source->blocks().shared;
    }
    fingerprint_ = hasher.finish();
  }

  // The names: those that parts share get the part's in front.
  Status prepare() {
    std::map<std::string, int> owners;
    for (const JoinPart& part : parts_)
      for (const Field& field : part.source->schema()) ++owners[field.name];
    std::set<std::string> taken;
    for (uint32_t p = 0; p < parts_.size(); ++p) {
      const Schema& own = parts_[p].source->schema();
      for (uint32_t f = 0; f < own.size(); ++f) {
        Field field = own[f];
        if (owners[field.name] > 1) field.name = parts_[p].name + "." + field.name;
        if (!taken.insert(field.name).second)
          return invalid(
              fmt::format("two parts give a field '{}': name the parts otherwise, "
                          "hr.join(images=a, masks=b)",
                          field.name));
        schema_.push_back(std::move(field));
        where_.push_back({p, f});
      }
    }
    return {};
  }

  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return parts_[0].source->size(); }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return fingerprint_; }

  Status needs(const SampleAsk& ask, Request& out) const override {
    ScratchRequests found(parts_.size());
    for (const uint32_t f : ask.fields) {
      if (f >= where_.size()) return internal("no such field");
      found[where_[f].part].fields.push_back(where_[f].field);
    }
    out.clear();
    std::vector<Base> base(parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) {
      PartRequest& part = found[p];
      SampleAsk own = ask;
      own.fields = part.fields;
      own.want_key = ask.want_key && p == 0;
      if (own.fields.empty() && !own.want_key) continue;
      HEADRACE_TRY(parts_[p].source->needs(own, part.request));
      base[p] = {static_cast<uint32_t>(out.units.size()), out.inline_bytes.size()};
      HEADRACE_TRY(add_units(p, part.request, out));
    }
    for (const uint32_t f : ask.fields) {
      const size_t p = where_[f].part;
      add_pieces(found[p], base[p], out);
    }
    return {};
  }

  bool run_of(uint64_t sample, Unit& run) const override {
    return parts_[0].source->run_of(sample, run) && files_.outward(0, run).ok();
  }
  Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const override {
    const size_t part = files_.part_of(unit);
    return parts_[part].source->decode_unit(files_.inward(unit), stored, decoded);
  }
  bool assembles(uint32_t field) const override {
    return parts_[where_[field].part].source->assembles(where_[field].field);
  }
  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    for (uint32_t p = 0; p < parts_.size(); ++p) {
      PartOutputs own(files_);
      for (const AssembleOutput& output : outputs)
        if (where_[output.field].part == p) own.add(output, where_[output.field].field);
      if (own.empty()) continue;
      std::vector<uint32_t> fields;
      for (const uint32_t f : ask.fields)
        if (where_[f].part == p) fields.push_back(where_[f].field);
      SampleAsk part_ask = ask;
      part_ask.fields = fields;
      part_ask.want_key = ask.want_key && p == 0;
      HEADRACE_TRY(parts_[p].source->assemble(part_ask, own.outputs()));
    }
    return {};
  }

  const Store& store() const override { return files_.store(); }
  std::string file_path(uint32_t file) const override { return files_.path(file); }
  std::string key(uint64_t sample) const override { return parts_[0].source->key(sample); }
  Status keys(uint64_t begin, uint64_t end, std::vector<std::string>& out) const override {
    return parts_[0].source->keys(begin, end, out);
  }

 private:
  struct Place {
    uint32_t part = 0;
    uint32_t field = 0;  // of the part
  };
  // Where a part's units and inline bytes begin in the whole request.
  struct Base {
    uint32_t unit = 0;
    uint64_t inline_byte = 0;
  };

  Status add_units(size_t part, Request& found, Request& out) const {
    for (Unit unit : found.units) {
      if (Status s = files_.outward(part, unit); !s.ok())
        return s.with(fmt::format("part '{}'", parts_[part].name));
      out.units.push_back(unit);
    }
    out.inline_bytes.insert(out.inline_bytes.end(), found.inline_bytes.begin(),
                            found.inline_bytes.end());
    if (!found.key.empty()) std::swap(out.key, found.key);
    return {};
  }

  static void add_pieces(PartRequest& part, const Base& base, Request& out) {
    const Request& found = part.request;
    const size_t f = part.next++;
    for (uint32_t p = found.first_piece[f]; p < found.first_piece[f + 1]; ++p) {
      Piece piece = found.pieces[p];
      if (piece.unit != kInlineUnit) {
        piece.unit += base.unit;
      } else {
        if (piece.length == kWholeFile) piece.length = found.inline_bytes.size() - piece.begin;
        piece.begin += base.inline_byte;
      }
      out.pieces.push_back(piece);
    }
    out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
  }

  const std::vector<JoinPart> parts_;
  const CombinedFiles files_;
  Blocks blocks_;
  Hash128 fingerprint_;
  Schema schema_;
  std::vector<Place> where_;  // of each field
};

}  // namespace

Result<std::shared_ptr<const Source>> join_sources(std::vector<JoinPart> parts) {
  if (parts.size() < 2) return invalid("a join has at least two parts");
  std::set<std::string> names;
  for (const JoinPart& part : parts) {
    if (!names.insert(part.name).second)
      return invalid(fmt::format("two parts are named '{}'", part.name));
    if (part.source->size() != parts[0].source->size())
      return invalid(
          fmt::format("'{}' has {} samples and '{}' has {}: join them by key, or views "
                      "of them that are equally long",
                      parts[0].name, parts[0].source->size(), part.name, part.source->size()));
  }
  auto made = std::make_shared<Joined>(std::move(parts));
  HEADRACE_TRY(made->prepare());
  return std::shared_ptr<const Source>(std::move(made));
}

}  // namespace headrace

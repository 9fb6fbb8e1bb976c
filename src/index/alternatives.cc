// SPDX-License-Identifier: Apache-2.0
#include "index/alternatives.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/combined.h"
#include "index/source_wrapper.h"

namespace headrace {
namespace {

bool is_picture(Kind kind) {
  return kind == Kind::kBytes || kind == Kind::kJpeg || kind == Kind::kPng || kind == Kind::kWebp;
}

// The same samples, hence the base's fingerprint: by which name a value is asked for is not part of
// it.  Immutable, hence thread-safe.
class Alternatives final : public SourceWrapper {
 public:
  using SourceWrapper::SourceWrapper;

  Status prepare(const std::vector<Alternative>& alternatives) {
    const Schema& below = base().schema();
    std::vector<bool> hidden(below.size(), false);
    std::vector<std::pair<uint32_t, Place>> placed;  // where it stands, and what it is
    for (const Alternative& alternative : alternatives) {
      Place place;
      if (Status s = resolve(alternative, place); !s.ok())
        return s.with(fmt::format("field '{}'", alternative.name));
      const uint32_t first = place.of[0];
      if (alternative.replaces)
        for (const uint32_t f : place.of) hidden[f] = true;
      placed.emplace_back(alternative.replaces ? first : static_cast<uint32_t>(below.size()),
                          std::move(place));
    }
    for (uint32_t f = 0; f <= below.size(); ++f) {
      for (const auto& [at, place] : placed)
        if (at == f) add(place);
      if (f < below.size() && !hidden[f]) add({below[f], {f}});
    }
    return {};
  }

  const Schema& schema() const override { return schema_; }

  Status needs(const SampleAsk& ask, Request& out) const override {
    ScratchRequests scratch(1);  // the base may be one of these too
    std::vector<uint32_t>& wanted = scratch[0].fields;
    Request& found = scratch[0].request;
    for (const uint32_t field : ask.fields) {
      if (field >= of_.size()) return internal("no such field");
      const std::vector<uint32_t>& of = of_[field];
      uint32_t chosen = of[0];
      if (of.size() > 1) {
        found.clear();
        HEADRACE_TRY(base().needs(of_base(ask, of, false), found));
        for (size_t i = of.size(); i-- > 0;)
          if (found.first_piece[i + 1] > found.first_piece[i]) chosen = of[i];
      }
      wanted.push_back(chosen);
    }
    return base().needs(of_base(ask, wanted, ask.want_key), out);
  }

  uint64_t row_bytes(uint32_t field) const override {
    return of_[field].size() == 1 ? base().row_bytes(of_[field][0]) : 0;
  }
  Status row_places(uint32_t field, std::span<const uint64_t> samples,
                    std::span<RowPlace> out) const override {
    return base().row_places(of_[field][0], samples, out);
  }
  bool assembles(uint32_t field) const override { return base().assembles(of_[field][0]); }
  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    std::vector<uint32_t> fields;
    for (const uint32_t field : ask.fields) fields.push_back(of_[field][0]);
    std::vector<AssembleOutput> below(outputs.begin(), outputs.end());
    for (AssembleOutput& output : below) output.field = of_[output.field][0];
    return base().assemble(of_base(ask, fields, ask.want_key), below);
  }

 private:
  struct Place {
    Field field;
    std::vector<uint32_t> of;  // of the base
  };

  static SampleAsk of_base(SampleAsk ask, std::span<const uint32_t> fields, bool want_key) {
    ask.fields = fields;
    ask.want_key = want_key;
    return ask;
  }

  void add(Place place) {
    schema_.push_back(std::move(place.field));
    of_.push_back(std::move(place.of));
  }

  Status resolve(const Alternative& alternative, Place& out) const {
    const Schema& below = base().schema();
    for (const std::string& name : alternative.of) {
      const auto it = std::find_if(below.begin(), below.end(),
                                   [&name](const Field& f) { return f.name == name; });
      if (it == below.end())
        return invalid(fmt::format("there is no field '{}' in the data", name));
      out.of.push_back(static_cast<uint32_t>(it - below.begin()));
    }
    if (out.of.empty()) return invalid("no field is named");
    out.field = below[out.of[0]];
    for (const uint32_t f : out.of) HEADRACE_TRY(join(below[f], f, out));
    out.field.name = alternative.name;
    return {};
  }

  Status join(const Field& other, uint32_t number, Place& out) const {
    Field& field = out.field;
    field.many |= other.many;
    const bool alike = field.storage == other.storage && field.dtype == other.dtype &&
                       field.shape == other.shape && !base().assembles(number);
    if (out.of.size() == 1 || (alike && field.kind == other.kind)) return {};
    if (alike && field.storage == Storage::kExtent && is_picture(field.kind) &&
        is_picture(other.kind)) {
      field.kind = Kind::kBytes;  // decoders look at each
      return {};
    }
    return invalid(fmt::format("'{}' is {} and '{}' is {}: one cannot stand for the other",
                               base().schema()[out.of[0]].name,
                               field_text(base().schema()[out.of[0]]), other.name,
                               field_text(other)));
  }

  Schema schema_;
  std::vector<std::vector<uint32_t>> of_;  // of each field: those of the base
};

}  // namespace

Result<std::shared_ptr<const Source>> with_alternatives(std::shared_ptr<const Source> base,
                                                        std::vector<Alternative> alternatives) {
  auto made = std::make_shared<Alternatives>(std::move(base));
  HEADRACE_TRY(made->prepare(alternatives));
  return std::shared_ptr<const Source>(std::move(made));
}

}  // namespace headrace

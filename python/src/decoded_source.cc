// SPDX-License-Identifier: Apache-2.0
#include "decoded_source.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>

#include "convert.h"
#include "held_object.h"
#include "index/source_wrapper.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// Units that a codec opens, and how the stored bytes are to be opened before:
//   31            16 15        0
//   | kOurs + codec |  base's  |
constexpr uint32_t kOurs = 0xc0d0;
constexpr uint32_t kMostCodecs = 16;
constexpr uint32_t kMostBase = 1 << 16;

// Immutable, hence thread-safe.
class DecodedSource final : public SourceWrapper {
 public:
  DecodedSource(std::shared_ptr<const Source> base, std::vector<PythonCodec> codecs)
      : SourceWrapper(std::move(base)), schema_(this->base().schema()) {
    for (PythonCodec& codec : codecs) {
      const auto at = std::find_if(schema_.begin(), schema_.end(),
                                   [&](const Field& f) { return f.name == codec.field; });
      of_.push_back(static_cast<uint32_t>(at - schema_.begin()));
      functions_.push_back(std::make_unique<HeldObject>(std::move(codec.function)));
      Field added{.name = codec.name, .kind = Kind::kNpy, .many = at->many};
      schema_.push_back(std::move(added));
    }
  }

  const Schema& schema() const override { return schema_; }

  Status needs(const SampleAsk& ask, Request& out) const override {
    std::vector<uint32_t> fields(ask.fields.begin(), ask.fields.end());
    for (uint32_t& field : fields)
      if (is_added(field)) field = of_[added(field)];
    SampleAsk below = ask;
    below.fields = fields;
    HEADRACE_TRY(base().needs(below, out));
    for (size_t i = 0; i < ask.fields.size(); ++i)
      if (is_added(ask.fields[i])) HEADRACE_TRY(decode_pieces(ask.fields[i], i, out));
    return {};
  }

  Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const override {
    const uint32_t codec = (unit.encoding >> 16) - kOurs;
    if (unit.encoding >> 16 < kOurs || codec >= functions_.size())
      return base().decode_unit(unit, stored, decoded);
    Unit below = unit;
    below.encoding &= kMostBase - 1;
    if (below.encoding == 0) return call(*functions_[codec], stored, decoded);
    Buffer opened;
    HEADRACE_TRY(base().decode_unit(below, stored, opened));
    return call(*functions_[codec], opened.bytes(), decoded);
  }

  uint64_t row_bytes(uint32_t field) const override {
    return is_added(field) ? 0 : base().row_bytes(field);
  }
  bool assembles(uint32_t field) const override {
    return !is_added(field) && base().assembles(field);
  }
  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    std::vector<uint32_t> fields;
    for (const uint32_t field : ask.fields)
      fields.push_back(is_added(field) ? of_[added(field)] : field);
    SampleAsk below = ask;
    below.fields = fields;
    return base().assemble(below, outputs);
  }

 private:
  bool is_added(uint32_t field) const { return field >= base().schema().size(); }
  size_t added(uint32_t field) const { return field - base().schema().size(); }

  // Each value is a unit of its own, that the codec opens.
  Status decode_pieces(uint32_t field, size_t i, Request& out) const {
    const auto code = static_cast<uint32_t>(added(field));
    for (uint32_t p = out.first_piece[i]; p < out.first_piece[i + 1]; ++p) {
      Piece& piece = out.pieces[p];
      const bool is_unit =
          piece.unit != kInlineUnit && piece.length != kRow && !piece.continues &&
          piece.begin == 0 &&
          (piece.length == kWholeFile || piece.length == out.units[piece.unit].decoded_bytes);
      if (!is_unit || out.units[piece.unit].encoding >= kMostBase)
        return unsupported(
            fmt::format("field '{}': a codec of Python's takes values that lie in files by "
                        "themselves; here say hr.bytes(\"{}\").map(decode)",
                        base().schema()[of_[code]].name, base().schema()[of_[code]].name));
      Unit unit = out.units[piece.unit];
      unit.encoding |= (kOurs + code) << 16;
      unit.decoded_bytes = kWholeFile;  // nobody knows before
      const uint32_t raw = piece.unit;
      piece = {.unit = raw};
      if (std::count_if(out.pieces.begin(), out.pieces.end(),
                        [raw](const Piece& other) { return other.unit == raw; }) == 1) {
        out.units[raw] = unit;  // nobody wants the stored bytes
        continue;
      }
      piece.unit = static_cast<uint32_t>(out.units.size());
      out.units.push_back(unit);
    }
    return {};
  }

  static Status call(const HeldObject& function, Bytes stored, Buffer& decoded) {
    if (!nb::is_alive()) return cancelled("Python has ended");
    const nb::gil_scoped_acquire gil;
    try {
      const auto npy = nb::cast<nb::bytes>(function.get()(to_bytes(stored)));
      decoded.resize(npy.size());
      if (npy.size() > 0) std::memcpy(decoded.data(), npy.c_str(), npy.size());
      return {};
    } catch (nb::python_error& e) {
      if (e.matches(PyExc_MemoryError)) return exhausted("out of memory");
      return corrupt(nb::cast<std::string>(nb::str(e.value())));
    } catch (const std::exception& e) {
      return internal(e.what());
    }
  }

  Schema schema_;
  std::vector<uint32_t> of_;  // of each field that is added: the one that is stored
  std::vector<std::unique_ptr<HeldObject>> functions_;
};

}  // namespace

Result<std::shared_ptr<const Source>> decoded_source(std::shared_ptr<const Source> base,
                                                     std::vector<PythonCodec> codecs) {
  if (codecs.size() > kMostCodecs)
    return unsupported(fmt::format("a data set of more than {} decoded fields", kMostCodecs));
  for (const PythonCodec& codec : codecs)
    if (std::none_of(base->schema().begin(), base->schema().end(),
                     [&](const Field& f) { return f.name == codec.field; }))
      return invalid(fmt::format("there is no field '{}' in the data", codec.field));
  return std::shared_ptr<const Source>(
      std::make_shared<const DecodedSource>(std::move(base), std::move(codecs)));
}

}  // namespace headrace::py

// SPDX-License-Identifier: Apache-2.0
//
// For tests: values of a source, read without an engine.
#pragma once

#include <vector>

#include "array/array_fixture.h"
#include "index/source.h"
#include "storage/store.h"

namespace headrace {

// `open_all`: units that are alone are opened as if they were shared.  The fields of the sample, in
// one pass.
inline Result<std::vector<ByteList>> read_values(const Source& source, const SampleAsk& ask,
                                                 bool open_all) {
  Request request;
  HEADRACE_TRY(source.needs(ask, request));
  std::vector<Buffer> units(request.units.size());
  std::vector<const Unit*> unopened(units.size(), nullptr);
  for (size_t u = 0; u < units.size(); ++u) {
    const Unit& unit = request.units[u];
    Buffer stored;
    HEADRACE_TRY(source.store().read_at(source.file_path(unit.file), unit.offset, unit.stored_bytes,
                                        stored));
    if (unit.unshared && !open_all) unopened[u] = &unit;
    if (unit.encoding == 0 || unopened[u] != nullptr)
      units[u] = std::move(stored);
    else
      HEADRACE_TRY(source.decode_unit(unit, stored.bytes(), units[u]));
  }
  std::vector<PieceBytes> pieces;
  for (const Piece& piece : request.pieces)
    pieces.push_back({units[piece.unit].bytes(), unopened[piece.unit]});
  std::vector<ByteList> values(ask.fields.size());
  std::vector<KeptRoom> rooms(values.begin(), values.end());
  std::vector<AssembleOutput> outputs;
  for (size_t f = 0; f < values.size(); ++f) {
    const uint32_t first = request.first_piece[f];
    outputs.push_back({ask.fields[f],
                       std::span(pieces).subspan(first, request.first_piece[f + 1] - first),
                       &rooms[f]});
  }
  HEADRACE_TRY(source.assemble(ask, outputs));
  return values;
}

// Both ways must agree.
inline Result<ByteList> read_value(const Source& source, uint64_t sample, uint32_t field,
                                   Key draws) {
  const SampleAsk ask{.sample = sample, .fields = {&field, 1}, .draws = draws, .want_key = true};
  HEADRACE_ASSIGN(std::vector<ByteList> values, read_values(source, ask, false));
  HEADRACE_ASSIGN(const std::vector<ByteList> shared, read_values(source, ask, true));
  if (values != shared) return internal("a unit that is alone opens to something else");
  return values[0];
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// For tests: one value of a source, read without an engine.
#pragma once

#include <vector>

#include "array/array_fixture.h"
#include "index/source.h"
#include "storage/store.h"

namespace headrace {

// `open_all`: units that are alone are opened as if they were shared.
inline Result<ByteList> read_value(const Source& source, uint64_t sample, uint32_t field, Key draws,
                                   bool open_all) {
  Request request;
  const std::vector<uint32_t> fields = {field};
  HEADRACE_TRY(source.needs(sample, fields, draws, true, request));
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
  ByteList value;
  KeptRoom room(value);
  HEADRACE_TRY(source.assemble(sample, field, draws, pieces, room));
  return value;
}

// Both ways must agree.
inline Result<ByteList> read_value(const Source& source, uint64_t sample, uint32_t field,
                                   Key draws) {
  HEADRACE_ASSIGN(ByteList value, read_value(source, sample, field, draws, false));
  HEADRACE_ASSIGN(const ByteList shared, read_value(source, sample, field, draws, true));
  if (value != shared) return internal("a unit that is alone opens to something else");
  return value;
}

}  // namespace headrace

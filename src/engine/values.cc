// SPDX-License-Identifier: Apache-2.0
#include "engine/values.h"

#include <fmt/format.h>

namespace headrace {
namespace {

Status decode_one(const ValueWork& work, Gather& gather, size_t i, size_t c, size_t v,
                  SampleContext& context, Slot& out, uint64_t& bytes) {
  HEADRACE_ASSIGN(const Bytes value, gather.value(i, c, v));
  bytes += value.size();
  if (Status s = work.decoder.run({&value, 1}, context, out); !s.ok())
    return gather.locate(s.with(fmt::format("field '{}'", work.spec.name)), i, c, v);
  return {};
}

Status decode_together(const ValueWork& work, Gather& gather, size_t i, size_t c,
                       SampleContext& context, Slot& out, uint64_t& bytes) {
  std::vector<Bytes> values;
  for (size_t v = 0; v < gather.values(i, c); ++v) {
    HEADRACE_ASSIGN(values.emplace_back(), gather.value(i, c, v));
    bytes += values.back().size();
  }
  if (Status s = work.decoder.run(values, context, out); !s.ok())
    return s.with(fmt::format("field '{}'", work.spec.name));
  return {};
}

class SlotRoom final : public ValueRoom {
 public:
  SlotRoom(Slot& slot, const TensorSpec& spec) : slot_(slot), spec_(spec) {}
  Result<MutableBytes> room(size_t bytes) override {
    HEADRACE_ASSIGN(const MutableBytes out, slot_.room(spec_.shape));
    if (out.size() != bytes)
      return corrupt(fmt::format("a value of {} bytes, {} are promised", bytes, out.size()));
    return out;
  }
  bool is_last() const override { return true; }

 private:
  Slot& slot_;
  const TensorSpec& spec_;
};

}  // namespace

Status decode_values(const ValueWork& work, const Source& source, Gather& gather, size_t i,
                     size_t c, SampleContext& context, ColumnBuilder& column, size_t slot,
                     uint64_t& bytes) {
  const size_t count = gather.values(i, c);
  if (work.spec.many) {
    ColumnBuilder& values = column.values(slot, count);
    const Key of_values = context.draws().with("value");
    for (size_t v = 0; v < count; ++v) {
      ColumnSlot out(values, v);
      const ScopedDraws own(context, of_values.with(v));
      HEADRACE_TRY(decode_one(work, gather, i, c, v, context, out, bytes));
    }
    return {};
  }
  if (count == 0 && work.absent != nullptr) return fill_absent(work, context, column, slot);
  if (work.decoder.inputs() == 0 && source.schema()[work.field].many) {
    ColumnSlot out(column, slot);
    return decode_together(work, gather, i, c, context, out, bytes);
  }
  const std::string& name = source.schema()[work.field].name;
  if (count == 0)
    return corrupt(fmt::format(
        "the sample has no field '{}'; where some lack it, say default=… or optional=True", name));
  if (count > 1)
    return invalid(
        fmt::format("the sample has {} values of field '{}' and one is wanted; say many=True to "
                    "get them as a list",
                    count, name));
  if (work.decoder.copies() && work.spec.packing == Packing::kList) {
    HEADRACE_ASSIGN(const Bytes value, gather.value(i, c));
    if (Status s = work.decoder.check(value); !s.ok())
      return gather.locate(s.with(fmt::format("field '{}'", work.spec.name)), i, c);
    if (SharedBuffer whole = gather.take(i, c)) {
      bytes += whole->size();
      column.adopt(slot, std::move(whole));
      return {};
    }
  }
  ColumnSlot out(column, slot);
  if (work.decoder.keeps_elements() && gather.assembles(i, c)) {
    SlotRoom room(out, work.spec.value);
    bytes += work.spec.value.bytes();
    const Gather::AssembleInto into{c, &room};
    if (Status s = gather.assemble(i, {&into, 1}); !s.ok())
      return gather.locate(s.with(fmt::format("field '{}'", work.spec.name)), i, c);
    return {};
  }
  return decode_one(work, gather, i, c, 0, context, out, bytes);
}

Status fill_absent(const ValueWork& work, SampleContext& context, ColumnBuilder& column,
                   size_t slot) {
  if (work.spec.many) {
    column.values(slot, 0);
    return {};
  }
  if (work.absent == nullptr) return internal("a field without a value in any sample");
  if (!work.absent->decoder) {
    column.adopt(slot, nullptr);
    return {};
  }
  ColumnSlot out(column, slot);
  const Bytes stored(work.absent->stored);
  if (Status s = work.absent->decoder->run({&stored, 1}, context, out); !s.ok())
    return s.with(fmt::format("field '{}': its default", work.spec.name));
  return {};
}

bool assembles_into_slot(const ValueWork& work, const Source& source) {
  return !work.spec.many && work.decoder.keeps_elements() && source.assembles(work.field);
}

Status assemble_values(std::span<const AssembledColumn> columns, Gather& gather, size_t i,
                       size_t slot, uint64_t& bytes) {
  std::vector<ColumnSlot> slots;
  std::vector<SlotRoom> rooms;
  std::vector<Gather::AssembleInto> into;
  slots.reserve(columns.size());  // they are pointed to
  rooms.reserve(columns.size());
  for (const AssembledColumn& column : columns) {
    slots.emplace_back(*column.column, slot);
    rooms.emplace_back(slots.back(), column.work.spec.value);
    into.push_back({column.c, &rooms.back()});
    bytes += column.work.spec.value.bytes();
  }
  if (gather.assemble(i, into).ok()) return {};
  // Which of them it was: each by itself.
  for (size_t k = 0; k < columns.size(); ++k)
    if (Status s = gather.assemble(i, {&into[k], 1}); !s.ok())
      return gather.locate(s.with(fmt::format("field '{}'", columns[k].work.spec.name)), i,
                           columns[k].c);
  return {};
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// ItemFetch: an object's __getitem__, or its __getitems__ where it has one.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <utility>

#include "held_object.h"
#include "item_encoder.h"
#include "item_thread.h"

namespace headrace::py {

// Used with the GIL.
class ItemFetch {
 public:
  // `many`: __getitems__, or None.
  ItemFetch(nanobind::object object, nanobind::object many)
      : object_(std::move(object)), many_(std::move(many)) {}

  bool has_many() const { return !many_.get().is_none(); }
  // All of them at once; None where that failed, gave another number of samples, or there is no
  // such function: then each is asked for by itself.
  nanobind::object all(std::span<const uint64_t> numbers) const;
  // Throws what Python raised.
  nanobind::object one(uint64_t number) const;

 private:
  const HeldObject object_, many_;
};

// Makes samples right in their slots.  `failed` is told which of the run's rows failed, counted
// from the first of all rows, and what was raised.
template <typename Failed>
void make_items(const ItemFetch& fetch, const ItemEncoder& encoder, const RowRun& run,
                Failed&& failed) {
  const RowsToMake& rows = *run.rows;
  const nanobind::object found = fetch.all(std::span(rows.samples).subspan(run.from, run.count));
  std::vector<ItemEncoder::Room> rooms(rows.columns.size());
  for (size_t c = 0; c < rooms.size(); ++c) rooms[c].field = rows.columns[c].field;
  for (size_t i = run.from; i < run.from + run.count; ++i) {
    for (size_t c = 0; c < rooms.size(); ++c) rooms[c].bytes = rows.room(c, i);
    try {
      const nanobind::object item =
          found.is_none() ? fetch.one(rows.samples[i]) : nanobind::object(found[i - run.from]);
      encoder.place(item, rooms);
    } catch (nanobind::python_error& e) {
      nanobind::object value = nanobind::borrow(e.value());
      if (e.traceback().is_valid())
        PyException_SetTraceback(value.ptr(), nanobind::object(e.traceback()).ptr());
      failed(i, std::move(value));
    }
  }
}

}  // namespace headrace::py

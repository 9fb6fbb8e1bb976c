// SPDX-License-Identifier: Apache-2.0
//
// The header of a call is its form, u32.  0: then the numbers, u64 each; the header of the answer
// is
//
//   0          4                4 + 8 n
//   +----------+----------------+- - - - - - - - - - - - - - - - - - - - - - - - - - - -+
//   | in place | where each row | of each failure: number in the call u32, is bad u8,   |
//   | u32      | ends, u64      | bytes of words u32, of a traceback u32, and both      |
//   +----------+----------------+- - - - - - - - - - - - - - - - - - - - - - - - - - - -+
//
// Its first result are the rows in the place that the call gave, its second those that did not
// fit.
//
// Else the form is a number of parts, one for each batch that the samples are of:
//
//   +---------+---------+- - - - - - - - - - - - - - - - - - -+------------------+----------------+
//   | samples | columns | of each column: field u32,          | numbers, u64     | slots, u32     |
//   | u32     | u32     | bytes of a slot u32                 | each             | each           |
//   +---------+---------+- - - - - - - - - - - - - - - - - - -+------------------+----------------+
//
// The places are the columns of all parts; the answer has failures alone, counted over all parts.
#include "item_processes.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "held_object.h"
#include "item_source.h"
#include "trace/clock.h"
#include "worker_pool.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

constexpr size_t kMost = 512;              // samples of a call
constexpr size_t kFirst = 8;               // and of the first ones, whose cost nobody knows
constexpr uint64_t kCallNs = 4'000'000;    // what a call should take: a message costs some 50 us
constexpr uint64_t kMostPlace = 16 << 20;  // bytes that a call is given for its rows

template <typename T>
void put_number(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <typename T>
bool take_number(std::string_view& from, T& out) {
  if (from.size() < sizeof out) return false;
  std::memcpy(&out, from.data(), sizeof out);
  from.remove_prefix(sizeof out);
  return true;
}

void remember(const std::string& words, const std::string& traceback) {
  if (traceback.empty()) return;
  const nb::gil_scoped_acquire gil;
  try {
    nb::module_::import_("headrace.errors").attr("remember_remote")(words, traceback);
  } catch (nb::python_error&) {  // the error itself is told all the same
  }
}

// Thread-safe.
class ProcessItems final : public ItemServer {
 public:
  ProcessItems(nb::handle processes, uint64_t row_bytes, std::shared_ptr<ItemCost> cost)
      : processes_(nb::borrow(processes)),
        pool_(nb::cast<WorkerPoolHandle&>(processes.attr("core")).pool),
        cost_(std::move(cost)),
        row_bytes_(row_bytes) {}

  size_t most_together() const override { return together_.load(std::memory_order_relaxed); }
  size_t most_at_all() const override { return kMost; }
  bool is_elsewhere() const override { return true; }

  void serve(std::span<ReadRequest> items) const override {
    const Stopwatch watch;
    uint64_t called_ns = 0;
    const Status status = fetch(items, called_ns);
    // One of them may have ended the process: each is asked for by itself.
    if (!status.ok() && items.size() > 1)
      for (ReadRequest& item : items) {
        Status own = fetch({&item, 1}, called_ns);
        if (!own.ok()) item.status = std::move(own);
      }
    else if (!status.ok())
      items[0].status = status;
    cost_->samples += items.size();
    cost_->busy_ns += watch.ns();
    if (status.ok()) note_cost(called_ns / items.size());
  }

  void make(std::span<const RowRun> runs) const override {
    const Stopwatch watch;
    size_t samples = 0;
    for (const RowRun& run : runs) samples += run.count;
    uint64_t called_ns = 0;
    const Status status = make_there(runs, called_ns);
    if (status.ok()) {
      note_cost(called_ns / samples);
    } else {
      // One of them may have ended the process: each is asked for by itself.
      for (const RowRun& run : runs)
        for (size_t i = run.from; i < run.from + run.count; ++i) {
          const RowRun one{run.rows, i, 1};
          const Status own = samples == 1 ? status : make_there({&one, 1}, called_ns);
          if (!own.ok()) run.rows->failed.emplace_back(i, own.in_file(path_of(run, i)));
        }
    }
    cost_->samples += samples;
    cost_->busy_ns += watch.ns();
  }

 private:
  // Samples of one call: as many as take about kCallNs.
  void note_cost(uint64_t each_ns) const {
    const uint64_t was = each_ns_.load(std::memory_order_relaxed);
    const uint64_t now = was == 0 ? each_ns : (3 * was + each_ns) / 4;
    each_ns_.store(now, std::memory_order_relaxed);
    together_.store(std::clamp<size_t>(kCallNs / std::max<uint64_t>(1, now), 1, kMost),
                    std::memory_order_relaxed);
  }

  std::string path_of(const RowRun& run, size_t i) const {
    return item_path(cost_->name, run.rows->samples[i]);
  }

  // A column of a call: the batch's own memory, where processes see that, else some that is copied.
  struct Place {
    SharedBuffer own;
    MutableBytes bytes;
  };

  static Place place_of(const RowRun& run, const RowsToMake::Column& column) {
    if (column.slots.empty() || process_arena()->name_of(column.slots.data()))
      return {nullptr, column.slots};
    Place out{process_memory().take(run.count * column.bytes), {}};
    out.bytes = out.own->span();
    return out;
  }

  Status make_there(std::span<const RowRun> runs, uint64_t& called_ns) const {
    std::string header;
    std::vector<Place> places;
    put_number(header, static_cast<uint32_t>(runs.size()));
    for (const RowRun& run : runs) {
      const RowsToMake& rows = *run.rows;
      put_number(header, static_cast<uint32_t>(run.count));
      put_number(header, static_cast<uint32_t>(rows.columns.size()));
      bool is_copied = false;
      for (const RowsToMake::Column& column : rows.columns) {
        put_number(header, column.field);
        put_number(header, static_cast<uint32_t>(column.bytes));
        is_copied = (places.emplace_back(place_of(run, column)).own != nullptr) || is_copied;
      }
      for (size_t i = run.from; i < run.from + run.count; ++i) put_number(header, rows.samples[i]);
      for (size_t i = run.from; i < run.from + run.count; ++i)
        put_number(header, is_copied ? static_cast<uint32_t>(i - run.from) : rows.slots[i]);
    }
    WorkerReply reply;
    {
      WorkerPool::Lease lease(*pool_);
      std::vector<MutableBytes> memory;
      for (const Place& place : places) memory.push_back(place.bytes);
      const Stopwatch watch;
      auto called = lease.call(0, header, {}, memory);
      called_ns += watch.ns();
      if (!called.ok()) {
        remember(lease.error().what, lease.error().traceback);
        return called.status();
      }
      reply = std::move(called).value();
    }
    copy_rows(runs, places);
    return take_failures(reply.header, [&](size_t number, const Status& why) {
      for (const RowRun& run : runs) {
        if (number < run.count) {
          const size_t i = run.from + number;
          run.rows->failed.emplace_back(i, Status(why).in_file(path_of(run, i)));
          return true;
        }
        number -= run.count;
      }
      return false;
    });
  }

  static void copy_rows(std::span<const RowRun> runs, std::span<const Place> places) {
    for (const RowRun& run : runs) {
      for (size_t c = 0; c < run.rows->columns.size(); ++c) {
        const Place& place = places[c];
        const size_t bytes = run.rows->columns[c].bytes;
        for (size_t i = 0; place.own && bytes > 0 && i < run.count; ++i)
          std::memcpy(run.rows->room(c, run.from + i).data(), place.bytes.data() + i * bytes,
                      bytes);
      }
      places = places.subspan(run.rows->columns.size());
    }
  }

  Status fetch(std::span<ReadRequest> items, uint64_t& called_ns) const {
    std::string header;
    put_number(header, uint32_t{0});
    for (const ReadRequest& item : items) put_number(header, number_in(item.path));
    const uint64_t row = row_bytes_.load(std::memory_order_relaxed);
    const SharedBuffer place =
        process_memory().take(std::clamp<uint64_t>(row * items.size(), 64, kMostPlace));
    SharedBuffer more;
    WorkerReply reply;
    {
      WorkerPool::Lease lease(*pool_);
      const MutableBytes places[] = {place->span()};
      const Stopwatch watch;
      auto called = lease.call(0, header, {}, places);
      called_ns += watch.ns();
      if (!called.ok()) {
        remember(lease.error().what, lease.error().traceback);
        return called.status();
      }
      reply = std::move(called).value();
      if (reply.results.size() > 1) {
        more = process_memory().take(reply.results[1].bytes);
        HEADRACE_TRY(lease.place(1, more->span()));
      }
    }
    return take_rows(items, reply.header, place->bytes(), more ? more->bytes() : Bytes());
  }

  Status take_rows(std::span<ReadRequest> items, std::string_view header, Bytes place,
                   Bytes more) const {
    const auto other = [] { return internal("a process gave samples of another form"); };
    uint32_t in_place = 0;
    if (!take_number(header, in_place) || in_place > items.size()) return other();
    Bytes from = place;
    uint64_t begin = 0;
    uint64_t longest = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i == in_place) from = more;
      uint64_t end = 0;
      if (!take_number(header, end) || end < begin || end - begin > from.size()) return other();
      const uint64_t bytes = end - begin;
      items[i].into.resize(bytes);
      if (bytes > 0) std::memcpy(items[i].into.data(), from.data(), bytes);
      from = from.subspan(bytes);
      longest = std::max(longest, bytes);
      begin = end;
    }
    if (longest > row_bytes_.load(std::memory_order_relaxed))
      row_bytes_.store(longest, std::memory_order_relaxed);
    return take_failures(header, [&](size_t number, const Status& why) {
      if (number < items.size()) items[number].status = why;
      return number < items.size();
    });
  }

  // Each is told; false: there is no such sample.
  template <typename Tell>
  static Status take_failures(std::string_view header, Tell&& tell) {
    while (!header.empty()) {
      uint32_t number = 0, words = 0, traceback = 0;
      uint8_t is_bad = 0;
      if (!take_number(header, number) || !take_number(header, is_bad) ||
          !take_number(header, words) || !take_number(header, traceback) ||
          uint64_t{words} + traceback > header.size())
        return internal("a process gave failures of another form");
      const std::string said(header.substr(0, words));
      remember(said, std::string(header.substr(words, traceback)));
      if (!tell(number, is_bad != 0 ? corrupt(said) : invalid(said)))
        return internal("a process gave failures of another form");
      header.remove_prefix(words + traceback);
    }
    return {};
  }

  const HeldObject processes_;  // closed when Python ends, as long as it lives
  const std::shared_ptr<WorkerPool> pool_;
  const std::shared_ptr<ItemCost> cost_;
  mutable std::atomic<uint64_t> row_bytes_;  // the longest so far
  mutable std::atomic<uint64_t> each_ns_{0};
  mutable std::atomic<size_t> together_{kFirst};
};

}  // namespace

EncodedRows encode_rows(const ItemEncoder& encoder, const ItemFetch& fetch,
                        std::span<const uint64_t> numbers, MutableBytes place) {
  EncodedRows out;
  const nb::object found = fetch.all(numbers);
  uint64_t end = 0;
  Buffer other;
  bool fits = true;
  for (size_t i = 0; i < numbers.size(); ++i) {
    try {
      const nb::object item = found.is_none() ? fetch.one(numbers[i]) : nb::object(found[i]);
      const MutableBytes room = fits ? place.subspan(end) : MutableBytes();
      const size_t bytes = encoder.encode(item, room, other);
      if (bytes > room.size()) {
        fits = false;
        out.more.insert(out.more.end(), other.data(), other.data() + bytes);
      }
      end += bytes;
    } catch (nb::python_error& e) {
      nb::object value = nb::borrow(e.value());
      if (e.traceback().is_valid())
        PyException_SetTraceback(value.ptr(), nb::object(e.traceback()).ptr());
      out.failed.emplace_back(i, std::move(value));
    }
    out.ends.push_back(end);
    if (fits) out.in_place = static_cast<uint32_t>(i + 1);
  }
  return out;
}

std::vector<RowsToMake> rows_of_call(std::string_view header,
                                     std::span<const MutableBytes> places) {
  std::vector<RowsToMake> out;
  uint32_t parts = 0;
  if (!take_number(header, parts)) return {};
  for (uint32_t p = 0; p < parts; ++p) {
    RowsToMake& rows = out.emplace_back();
    uint32_t samples = 0, columns = 0;
    if (!take_number(header, samples) || !take_number(header, columns) || columns > places.size())
      return {};
    for (uint32_t c = 0; c < columns; ++c) {
      uint32_t field = 0, bytes = 0;
      if (!take_number(header, field) || !take_number(header, bytes)) return {};
      rows.columns.push_back({field, places[c], bytes});
    }
    places = places.subspan(columns);
    if (header.size() / (sizeof(uint64_t) + sizeof(uint32_t)) < samples) return {};
    rows.samples.resize(samples);
    rows.slots.resize(samples);
    for (uint64_t& sample : rows.samples) (void)take_number(header, sample);
    for (uint32_t& slot : rows.slots) {
      (void)take_number(header, slot);
      for (const RowsToMake::Column& column : rows.columns)
        if ((uint64_t{slot} + 1) * column.bytes > column.slots.size()) return {};
    }
  }
  return out;
}

std::shared_ptr<const ItemServer> item_processes(nb::handle processes, uint64_t row_bytes,
                                                 std::shared_ptr<ItemCost> cost) {
  return std::make_shared<const ProcessItems>(processes, row_bytes, std::move(cost));
}

}  // namespace headrace::py

// SPDX-License-Identifier: Apache-2.0
//
// The header of a call is the numbers, u64 each; that of its answer
//
//   0          4                4 + 8 n
//   +----------+----------------+- - - - - - - - - - - - - - - - - - - - - - - - - - - -+
//   | in place | where each row | of each failure: number in the call u32, is bad u8,   |
//   | u32      | ends, u64      | bytes of words u32, of a traceback u32, and both      |
//   +----------+----------------+- - - - - - - - - - - - - - - - - - - - - - - - - - - -+
//
// Its first result are the rows in the place that the call gave, its second those that did not
// fit.
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

constexpr size_t kMost = 128;              // samples of a call
constexpr size_t kFirst = 8;               // and of the first ones, whose cost nobody knows
constexpr uint64_t kCallNs = 2'000'000;    // what a call should take: a message costs some 50 us
constexpr uint64_t kMostPlace = 16 << 20;  // bytes that a call is given for its rows

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
    const Status status = fetch(items);
    // One of them may have ended the process: each is asked for by itself.
    if (!status.ok() && items.size() > 1)
      for (ReadRequest& item : items) {
        Status own = fetch({&item, 1});
        if (!own.ok()) item.status = std::move(own);
      }
    else if (!status.ok())
      items[0].status = status;
    cost_->samples += items.size();
    cost_->busy_ns += watch.ns();
    if (status.ok()) note_cost(watch.ns() / items.size());
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

  Status fetch(std::span<ReadRequest> items) const {
    std::string header;
    for (const ReadRequest& item : items) {
      const uint64_t number = number_in(item.path);
      header.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    const uint64_t row = row_bytes_.load(std::memory_order_relaxed);
    const SharedBuffer place =
        process_memory().take(std::clamp<uint64_t>(row * items.size(), 64, kMostPlace));
    SharedBuffer more;
    WorkerReply reply;
    {
      WorkerPool::Lease lease(*pool_);
      const MutableBytes places[] = {place->span()};
      auto called = lease.call(0, header, {}, places);
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
    return take_failures(items, header);
  }

  static Status take_failures(std::span<ReadRequest> items, std::string_view header) {
    while (!header.empty()) {
      uint32_t number = 0, words = 0, traceback = 0;
      uint8_t is_bad = 0;
      if (!take_number(header, number) || !take_number(header, is_bad) ||
          !take_number(header, words) || !take_number(header, traceback) ||
          uint64_t{words} + traceback > header.size() || number >= items.size())
        return internal("a process gave failures of another form");
      const std::string said(header.substr(0, words));
      remember(said, std::string(header.substr(words, traceback)));
      items[number].status = is_bad != 0 ? corrupt(said) : invalid(said);
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

// All of them at once; None where that failed, or gave another number of samples.
nb::object all_at_once(nb::handle fetch_many, std::span<const uint64_t> numbers) {
  if (fetch_many.is_none()) return nb::none();
  try {
    nb::list asked;
    for (const uint64_t n : numbers) asked.append(n);
    nb::object got = fetch_many(asked);
    return nb::len(got) == numbers.size() ? got : nb::none();
  } catch (nb::python_error&) {
    return nb::none();
  }
}

nb::object one_of(nb::handle object, nb::handle fetch_many, uint64_t number) {
  if (!fetch_many.is_none()) {
    nb::list one;
    one.append(number);
    return nb::object(fetch_many(one))[0];
  }
  const nb::object index = nb::steal(PyLong_FromUnsignedLongLong(number));
  nb::object item = nb::steal(PyObject_GetItem(object.ptr(), index.ptr()));
  if (!item.is_valid()) throw nb::python_error();
  return item;
}

}  // namespace

EncodedRows encode_rows(const ItemEncoder& encoder, nb::handle object, nb::handle fetch_many,
                        std::span<const uint64_t> numbers, MutableBytes place) {
  EncodedRows out;
  const nb::object found = all_at_once(fetch_many, numbers);
  uint64_t end = 0;
  Buffer other;
  bool fits = true;
  for (size_t i = 0; i < numbers.size(); ++i) {
    try {
      const nb::object item =
          found.is_none() ? one_of(object, fetch_many, numbers[i]) : nb::object(found[i]);
      const MutableBytes room = fits ? place.subspan(end) : MutableBytes();
      const size_t bytes = encoder.encode(item, room, other);
      if (bytes > room.size()) {
        fits = false;
        out.more.insert(out.more.end(), other.data(), other.data() + bytes);
      }
      end += bytes;
    } catch (nb::python_error& e) {
      nb::object value = nb::borrow(e.value());
      // Ctrl-C and exit are not of the sample.
      if (!PyErr_GivenExceptionMatches(value.ptr(), PyExc_Exception)) throw;
      if (e.traceback().is_valid())
        PyException_SetTraceback(value.ptr(), nb::object(e.traceback()).ptr());
      out.failed.emplace_back(i, std::move(value));
    }
    out.ends.push_back(end);
    if (fits) out.in_place = static_cast<uint32_t>(i + 1);
  }
  return out;
}

std::shared_ptr<const ItemServer> item_processes(nb::handle processes, uint64_t row_bytes,
                                                 std::shared_ptr<ItemCost> cost) {
  return std::make_shared<const ProcessItems>(processes, row_bytes, std::move(cost));
}

}  // namespace headrace::py

// SPDX-License-Identifier: Apache-2.0
#include "item_source.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "convert.h"
#include "held_object.h"
#include "index/row_maker.h"
#include "item_encoder.h"
#include "item_fetch.h"
#include "item_processes.h"
#include "trace/clock.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

constexpr uint64_t kNominalBytes = 64;  // of a sample: the order must not follow from what one has
constexpr uint64_t kMostBlocks = 1 << 16;  // of samples that lie nowhere
constexpr size_t kMostAhead = 16'384;
constexpr size_t kMostMade = 1024;  // samples that are handed over together
constexpr size_t kTogether = 64;    // samples of one call of __getitems__

// The samples of an object: file i is named NAME[i] and is sample i.  Thread-safe.
class ItemStore final : public Store {
 public:
  class Server final : public ItemServer {
   public:
    Server(nb::handle d, std::shared_ptr<ItemCost> cost)
        : cost_(std::move(cost)),
          encoder_(d["encoder"]),
          fetch_(nb::borrow(d["object"]), nb::borrow(d["fetch_many"])),
          explain_(nb::borrow(d["explain"])) {}

    size_t most_together() const override { return fetch_.has_many() ? kTogether : 1; }

    void serve(std::span<ReadRequest> items) const override {
      const Stopwatch watch;
      std::vector<uint64_t> numbers;
      for (const ReadRequest& item : items) numbers.push_back(number_in(item.path));
      nb::object found = nb::none();
      Status all = guarded(numbers[0], [&] { found = fetch_.all(numbers); });
      for (size_t i = 0; i < items.size(); ++i) {
        items[i].status = all;
        if (!all.ok()) continue;
        items[i].status = guarded(numbers[i], [&] {
          const nb::object item = found.is_none() ? fetch_.one(numbers[i]) : nb::object(found[i]);
          encoder_.encode(item, items[i].into);
        });
      }
      cost_->samples += items.size();
      cost_->busy_ns += watch.ns();
    }

    void make(std::span<const RowRun> runs) const override {
      const Stopwatch watch;
      for (const RowRun& run : runs) {
        RowsToMake& rows = *run.rows;
        const Status all = guarded(rows.samples[run.from], [&] {
          make_items(fetch_, encoder_, run, [&](size_t i, nb::object error) {
            rows.failed.emplace_back(i, status_of(error).in_file(path_of(rows.samples[i])));
          });
        });
        for (size_t i = run.from; !all.ok() && i < run.from + run.count; ++i)
          rows.failed.emplace_back(i, Status(all).in_file(path_of(rows.samples[i])));
        cost_->samples += run.count;
      }
      cost_->busy_ns += watch.ns();
    }

   private:
    std::string path_of(uint64_t number) const { return item_path(cost_->name, number); }

    template <typename F>
    Status guarded(uint64_t number, F&& work) const {
      try {
        work();
        return {};
      } catch (nb::python_error& e) {
        const nb::object value = nb::borrow(e.value());
        if (e.traceback().is_valid())
          PyException_SetTraceback(value.ptr(), nb::object(e.traceback()).ptr());
        return status_of(value);
      } catch (const std::bad_alloc&) {
        return exhausted("out of memory");
      } catch (const std::exception& e) {
        return internal(fmt::format("sample {}: {}", number, e.what()));
      }
    }

    // (whether the sample is bad, words); the words find the exception again (errors.remember).
    Status status_of(nb::handle error) const {
      try {
        const nb::object said = explain_.get()(error);
        const auto text = nb::cast<std::string>(said[1]);
        return nb::cast<bool>(said[0]) ? corrupt(text) : invalid(text);
      } catch (const std::exception& again) {
        return internal(again.what());
      }
    }

    const std::shared_ptr<ItemCost> cost_;
    const ItemEncoder encoder_;
    const ItemFetch fetch_;
    const HeldObject explain_;
  };

  ItemStore(std::shared_ptr<ItemThread> thread, nb::handle description,
            std::shared_ptr<ItemCost> cost)
      : thread_(std::move(thread)), server_(server_of(description, std::move(cost))) {}

  void read(std::span<ReadRequest> requests) const override { thread_->read(server_, requests); }
  void cancel(const ReadGroup& group) const override { thread_->cancel(group); }
  void make(RowsToMake&& rows) const { thread_->make(server_, std::move(rows)); }
  // Each process has its share of a batch; of one that is made in the time of half a call, one
  // process has all: the others are at the next batches.
  size_t rows_together(size_t samples) const {
    if (!server_->is_elsewhere()) return std::min(samples, kMostMade);
    const size_t processes = thread_->callers() - 1;
    const size_t most = server_->most_together();
    return std::min({samples, most, std::max((samples + processes - 1) / processes, most / 2)});
  }
  // So many asked for at a time keep all processes busy.
  StoreCost cost(const std::string&) const override {
    return {.parallel_reads = static_cast<uint32_t>(
                std::min<size_t>(thread_->callers() * server_->most_at_all(), kMostAhead)),
            .in_caller = false};
  }
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override {
    std::vector<Result<FileInfo>> out;
    for (const std::string& path : paths)
      out.emplace_back(
          unsupported("the samples of an object in Python are no files").in_file(path));
    return out;
  }
  Result<ListPage> list_page(const std::string& folder, const std::string&) const override {
    return unsupported("the samples of an object in Python are no files").in_file(folder);
  }

 private:
  static std::shared_ptr<const ItemServer> server_of(nb::handle d, std::shared_ptr<ItemCost> cost) {
    if (d["processes"].is_none()) return std::make_shared<const Server>(d, std::move(cost));
    return item_processes(d["processes"], nb::cast<uint64_t>(d["row_bytes"]), std::move(cost));
  }

  const std::shared_ptr<ItemThread> thread_;
  const std::shared_ptr<const ItemServer> server_;
};

// Immutable, hence thread-safe.
class ItemSource final : public Source, public RowMaker {
 public:
  ItemSource(nb::handle d, std::shared_ptr<ItemThread> thread, std::shared_ptr<ItemCost> cost)
      : name_(nb::cast<std::string>(d["name"])),
        samples_(nb::cast<uint64_t>(d["samples"])),
        fingerprint_(fingerprint_of(d["fingerprint"])),
        schema_(schema_of(d["fields"])),
        store_(std::move(thread), d, std::move(cost)) {
    const uint64_t block = (samples_ + kMostBlocks - 1) / kMostBlocks;
    for (uint64_t at = 0; at < samples_; at += block)
      blocks_.samples.push_back(static_cast<uint32_t>(std::min(block, samples_ - at)));
    blocks_.bytes = samples_ * kNominalBytes;
  }

  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return samples_; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return fingerprint_; }

  Status needs(const SampleAsk& ask, Request& out) const override {
    out.clear();
    if (ask.sample >= samples_) return internal("no such sample");
    if (!ask.fields.empty())
      out.units.push_back({.file = static_cast<uint32_t>(ask.sample),
                           .stored_bytes = kWholeFile,
                           .decoded_bytes = kWholeFile});
    for (const uint32_t field : ask.fields) {
      out.pieces.push_back({.unit = 0, .begin = field, .length = kRow});
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    if (ask.want_key) out.key = key(ask.sample);
    return {};
  }

  // Numbers and arrays of one size.
  bool makes_rows(uint32_t field) const override {
    const Field& f = schema_[field];
    return f.kind == Kind::kInt || f.kind == Kind::kFloat || f.kind == Kind::kArray;
  }
  size_t rows_together(size_t samples) const override { return store_.rows_together(samples); }
  void make_rows(RowsToMake&& rows) const override { store_.make(std::move(rows)); }

  const Store& store() const override { return store_; }
  std::string file_path(uint32_t file) const override {
    return file < samples_ ? item_path(name_, file) : std::string();
  }
  std::string key(uint64_t sample) const override { return std::to_string(sample); }

 private:
  const std::string name_;
  const uint64_t samples_;
  const Hash128 fingerprint_;
  const Schema schema_;
  const ItemStore store_;
  Blocks blocks_;
};

}  // namespace

std::string item_path(std::string_view name, uint64_t number) {
  return fmt::format("{}[{}]", name, number);
}

uint64_t number_in(std::string_view path) {
  uint64_t number = 0;
  const size_t open = path.rfind('[');
  if (open != std::string_view::npos)
    std::from_chars(path.data() + open + 1, path.data() + path.size(), number);
  return number;
}

Schema schema_of(nb::handle fields) {
  Schema out;
  for (nb::handle d : fields) {
    Field& field = out.emplace_back();
    field.name = nb::cast<std::string>(d["name"]);
    const std::optional<Kind> kind = kind_named(nb::cast<std::string>(d["kind"]));
    if (!kind) throw nb::value_error("no such kind");
    field.kind = *kind;
    if (field.kind == Kind::kInt || field.kind == Kind::kFloat) field.storage = Storage::kInline;
    if (!d["dtype"].is_none()) field.dtype = parse_dtype(nb::cast<std::string>(d["dtype"]));
    if (field.kind == Kind::kArray)
      for (nb::handle n : d["shape"]) field.shape.push_back(nb::cast<int64_t>(n));
  }
  return out;
}

Hash128 fingerprint_of(nb::handle words) {
  Hasher hasher;
  for (nb::handle word : words) hasher.add(std::string_view(nb::cast<std::string>(word)));
  return hasher.finish();
}

std::shared_ptr<const Source> item_source(nb::handle description,
                                          std::shared_ptr<ItemThread> thread,
                                          std::shared_ptr<ItemCost> cost) {
  return std::make_shared<const ItemSource>(description, std::move(thread), std::move(cost));
}

}  // namespace headrace::py

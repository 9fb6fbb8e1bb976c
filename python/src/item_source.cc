// SPDX-License-Identifier: Apache-2.0
#include "item_source.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "convert.h"
#include "held_object.h"
#include "item_encoder.h"
#include "item_processes.h"
#include "trace/clock.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

constexpr uint64_t kNominalBytes = 64;  // of a sample: the order must not follow from what one has
constexpr uint64_t kMostBlocks = 1 << 16;  // of samples that lie nowhere
constexpr size_t kMostAhead = 16'384;
constexpr size_t kTogether = 64;  // samples of one call of __getitems__

// The samples of an object: file i is named NAME[i] and is sample i.  Thread-safe.
class ItemStore final : public Store {
 public:
  class Server final : public ItemServer {
   public:
    Server(nb::handle d, std::shared_ptr<ItemCost> cost)
        : cost_(std::move(cost)),
          encoder_(d["encoder"]),
          object_(nb::borrow(d["object"])),
          fetch_many_(nb::borrow(d["fetch_many"])),
          explain_(nb::borrow(d["explain"])),
          together_(d["fetch_many"].is_none() ? 1 : kTogether) {}

    size_t most_together() const override { return together_; }

    void serve(std::span<ReadRequest> items) const override {
      const Stopwatch watch;
      if (items.size() == 1 || !serve_together(items))
        for (ReadRequest& item : items) item.status = serve_one(item);
      cost_->samples += items.size();
      cost_->busy_ns += watch.ns();
    }

   private:
    // False where one of them failed: then each is asked for by itself.
    bool serve_together(std::span<ReadRequest> items) const {
      try {
        nb::list numbers;
        for (const ReadRequest& item : items) numbers.append(number_in(item.path));
        const nb::object got = fetch_many_.get()(numbers);
        if (nb::len(got) != items.size()) return false;
        for (size_t i = 0; i < items.size(); ++i)
          items[i].status = guarded(i, [&] { encoder_.encode(got[i], items[i].into); });
        return true;
      } catch (nb::python_error&) {
        return false;
      }
    }

    Status serve_one(ReadRequest& request) const {
      const uint64_t number = number_in(request.path);
      return guarded(number, [&] {
        if (fetch_many_.get().is_none()) {
          const nb::object index = nb::steal(PyLong_FromUnsignedLongLong(number));
          const nb::object item = nb::steal(PyObject_GetItem(object_.get().ptr(), index.ptr()));
          if (!item.is_valid()) throw nb::python_error();
          return encoder_.encode(item, request.into);
        }
        nb::list one;
        one.append(number);
        const nb::object got = fetch_many_.get()(one);
        encoder_.encode(got[0], request.into);
      });
    }

    template <typename F>
    Status guarded(uint64_t number, F&& work) const {
      try {
        work();
        return {};
      } catch (nb::python_error& e) {
        return status_of(e);
      } catch (const std::bad_alloc&) {
        return exhausted("out of memory");
      } catch (const std::exception& e) {
        return internal(fmt::format("sample {}: {}", number, e.what()));
      }
    }

    // (whether the sample is bad, words); the words find the exception again (errors.remember).
    Status status_of(nb::python_error& e) const {
      try {
        const nb::object value = nb::borrow(e.value());
        if (e.traceback().is_valid())
          PyException_SetTraceback(value.ptr(), nb::object(e.traceback()).ptr());
        const nb::object said = explain_.get()(value);
        const auto text = nb::cast<std::string>(said[1]);
        return nb::cast<bool>(said[0]) ? corrupt(text) : invalid(text);
      } catch (const std::exception& again) {
        return internal(again.what());
      }
    }

    const std::shared_ptr<ItemCost> cost_;
    const ItemEncoder encoder_;
    const HeldObject object_, fetch_many_, explain_;
    const size_t together_;
  };

  ItemStore(std::shared_ptr<ItemThread> thread, nb::handle description,
            std::shared_ptr<ItemCost> cost)
      : thread_(std::move(thread)), server_(server_of(description, std::move(cost))) {}

  void read(std::span<ReadRequest> requests) const override { thread_->read(server_, requests); }
  void cancel(const ReadGroup& group) const override { thread_->cancel(group); }
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
class ItemSource final : public Source {
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

  const Store& store() const override { return store_; }
  std::string file_path(uint32_t file) const override {
    return file < samples_ ? fmt::format("{}[{}]", name_, file) : std::string();
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

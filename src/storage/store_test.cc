// SPDX-License-Identifier: Apache-2.0
#include "storage/store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <type_traits>

#include "storage/memory.h"

namespace headrace {
namespace {

// Answers every call with what no default answers, and keeps its name.
class Recorder final : public Store {
 public:
  void read(std::span<ReadRequest> requests) const override {
    calls.emplace_back("read");
    for (ReadRequest& r : requests) complete(std::move(r), corrupt("recorded"));
  }
  bool read_if_resident(ReadRequest&) const override {
    calls.emplace_back("read_if_resident");
    return true;
  }
  std::optional<Pin> pin(std::string_view, uint64_t, uint64_t) const override {
    calls.emplace_back("pin");
    return Pin(as_bytes("lent"), nullptr);
  }
  void cancel(const ReadGroup&) const override { calls.emplace_back("cancel"); }
  StoreCost cost(const std::string&) const override {
    calls.emplace_back("cost");
    return {.latency_ns = 7, .parallel_reads = 9, .in_caller = false};
  }
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string>) const override {
    calls.emplace_back("stat_all");
    return {FileInfo{.path = "s"}};
  }
  Result<ListPage> list_page(const std::string&, const std::string&) const override {
    calls.emplace_back("list_page");
    return ListPage{{FileInfo{.path = "l"}}};
  }
  mutable std::vector<std::string> calls;
};

class Plain final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
};

TEST(StoreWrapper, forwards_every_call_and_every_answer) {
  const auto inner = std::make_shared<Recorder>();
  const Plain outer(inner);
  Status got;
  ReadRequest request{.path = "p", .done = [&got](ReadRequest&& r) { got = r.status; }};
  outer.read({&request, 1});
  EXPECT_EQ(got.message(), "recorded");
  ReadRequest resident{.path = "p"};
  EXPECT_TRUE(outer.read_if_resident(resident));
  EXPECT_EQ(as_text(outer.pin("p", 0, 4)->bytes()), "lent");
  outer.cancel(ReadGroup());
  EXPECT_EQ(outer.cost("p").latency_ns, 7u);
  EXPECT_EQ(outer.stat("p").value().path, "s");
  EXPECT_EQ(outer.list("p").value()[0].path, "l");
  EXPECT_EQ(inner->calls, (std::vector<std::string>{"read", "read_if_resident", "pin", "cancel",
                                                    "cost", "stat_all", "list_page"}));
}

// A call that the wrapper inherits is a member of Store, and the line does not compile.
template <typename Member>
struct ClassOf;
template <typename Class, typename Function>
struct ClassOf<Function Class::*> {
  using type = Class;
};
#define HEADRACE_FORWARDED(call) \
  static_assert(std::is_same_v<ClassOf<decltype(&StoreWrapper::call)>::type, StoreWrapper>)
HEADRACE_FORWARDED(read);
HEADRACE_FORWARDED(read_if_resident);
HEADRACE_FORWARDED(pin);
HEADRACE_FORWARDED(cancel);
HEADRACE_FORWARDED(cost);
HEADRACE_FORWARDED(stat_all);
HEADRACE_FORWARDED(list_page);
#undef HEADRACE_FORWARDED

#if defined(__x86_64__) && defined(__GNUC__)
// The table of virtual functions of a class that adds one: its place is the number of those of
// Store (Itanium ABI: a pointer to it is 1 + 8 x its place; two places are destructors).
class OneMore : public Store {
 public:
  virtual void last() const = 0;
};

TEST(StoreWrapper, knows_how_many_calls_a_store_has) {
  const auto last = &OneMore::last;
  uint64_t place = 0;
  std::memcpy(&place, &last, sizeof place);
  EXPECT_EQ((place - 1) / 8, 2u + 7u)
      << "a virtual call was added to Store: forward it in StoreWrapper, and add it to both tests "
         "above";
}
#endif

TEST(Store, a_listing_that_does_not_get_on_is_an_error) {
  class Stuck final : public StoreWrapper {
   public:
    Stuck() : StoreWrapper(std::make_shared<MemoryStore>()) {}
    Result<ListPage> list_page(const std::string&, const std::string&) const override {
      return ListPage{{FileInfo{.path = "a/b"}}, "a/b"};
    }
  };
  EXPECT_EQ(Stuck().list("a").status().code(), Code::kInternal);
}

TEST(Store, completing_stamps_and_names_the_file) {
  ReadRequest got;
  ReadRequest request{.path = "f", .done = [&got](ReadRequest&& r) { got = std::move(r); }};
  request.sent_ns = steady_ns();
  complete(std::move(request), corrupt("bad"));
  EXPECT_EQ(got.status.place().file, "f");
  EXPECT_GT(got.sent_ns, 0u);
  EXPECT_GE(got.completed_ns, got.sent_ns);
}

}  // namespace
}  // namespace headrace

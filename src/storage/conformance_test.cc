// SPDX-License-Identifier: Apache-2.0
//
// What every store promises: each store of the table, each wrapper and each test store.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/have.h"
#include "storage/cache/cache.h"
#include "storage/fault.h"
#include "storage/held.h"
#include "storage/kept_blocks.h"
#ifdef HEADRACE_HAVE_CURL
#include "storage/hf/test_hub.h"
#include "storage/http/test_server.h"
#include "storage/s3/test_bucket.h"
#endif
#include "storage/local.h"
#include "storage/memory.h"
#include "storage/mixed.h"
#include "storage/open_store.h"
#include "storage/paths.h"
#include "storage/routed.h"
#include "storage/stage/staged_store.h"
#include "storage/test_folder.h"
#include "storage/test_stores.h"
#include "storage/versioned.h"

namespace headrace {
namespace {

using namespace std::chrono_literals;

// A store with some files in it, and where they are.
struct Fixture {
  std::shared_ptr<const Store> store;
  std::string root;
  std::shared_ptr<TestFolder> folder = nullptr;
  std::shared_ptr<void> server = nullptr;
};

constexpr std::pair<std::string_view, std::string_view> kFiles[] = {
    {"a.bin", "0123456789"}, {"empty", ""},     {"sub/b.bin", "bee"},
    {"sub/a.bin", "ay"},     {"sub.txt", "no"}, {"Z", "zed"},
};

// By the table: as everyone else opens it.
Fixture local() {
  auto folder = std::make_shared<TestFolder>();
  for (const auto& [name, content] : kFiles) folder->put(name, content);
  return {open_store(folder->path()).value().store, folder->path(), folder};
}
Fixture one_descriptor() {
  Fixture made = local();
  made.store = local_store(1);
  return made;
}
Fixture memory(size_t page_entries = 1000) {
  auto store = std::make_shared<MemoryStore>(page_entries);
  for (const auto& [name, content] : kFiles) store->put("mem://root/" + std::string(name), content);
  return {store, "mem://root"};
}
template <typename Wrapper>
Fixture around(Fixture inner) {
  return {std::make_shared<Wrapper>(inner.store), inner.root, inner.folder};
}
Fixture held(bool all) {
  Fixture made = memory();
  std::vector<std::string> files;
  for (const auto& [name, content] : kFiles)
    if (all || name == "a.bin") files.push_back(join_path(made.root, name));
  made.folder = std::make_shared<TestFolder>();
  made.store = hold_files(made.store, files, {.folder = made.folder->path()}).value().store;
  return made;
}
Fixture fail_later() {
  Fixture made = memory();
  made.store = std::make_shared<FailLaterStore>(made.store, FailLaterOptions{.fail_read = 0});
  return made;
}
Fixture latency(LatencyOptions options) {
  Fixture made = memory();
  made.store = std::make_shared<LatencyStore>(made.store, options);
  return made;
}
// Of each file the version that it has.
Fixture versioned() {
  Fixture made = memory();
  const auto store = std::make_shared<VersionedStore>(made.store);
  for (const auto& [name, content] : kFiles)
    store->expect(made.store->stat(join_path(made.root, name)).value());
  made.store = store;
  return made;
}

// Some of a file is there already.
Fixture kept() {
  Fixture made = memory();
  const std::string path = join_path(made.root, "a.bin");
  const auto store = std::make_shared<KeptBlocks>(made.store, 1 << 20);
  auto block = std::make_shared<Buffer>(9);
  std::memcpy(block->data(), "012345678", 9);
  store->keep(path, 0, made.store->stat(path).value().version, block);
  made.store = store;
  return made;
}

// Two stores as one; the files are in the second.
Fixture routed(Fixture second) {
  std::vector<RoutedStore::Route> routes;
  routes.push_back({memory().store, "mem://root/a.bin"});
  routes.push_back({second.store, join_path(second.root, "a.bin")});
  second.store = std::make_shared<RoutedStore>(std::move(routes));
  second.root = route_path(1, second.root);
  return second;
}

Fixture mixed(Fixture inner) {
  inner.store = std::make_shared<MixedStore>(StoreOptions{});
  return inner;
}

#ifdef HEADRACE_HAVE_CURL
Fixture http() {
  auto server = std::make_shared<TestServer>();
  for (const auto& [name, content] : kFiles) server->put("/root/" + std::string(name), content);
  const std::string root = server->url("/root");
  return {open_store(root).value().store, root, nullptr, server};
}
Fixture hf() {
  auto server = std::make_shared<TestServer>();
  for (const auto& [name, content] : kFiles)
    server->put("/datasets/u/n/resolve/main/root/" + std::string(name), content);
  server->answer(answers_of_hub(*server));
  const StoreOptions options{.endpoint = server->url(""), .token = "token"};
  const std::string root = "hf://datasets/u/n/root";
  return {open_store(root, options).value().store, root, nullptr, server};
}
Fixture s3() {
  auto server = std::make_shared<TestServer>();
  for (const auto& [name, content] : kFiles)
    server->put("/bucket/root/" + std::string(name), content);
  server->answer(answers_of_s3(*server, 1000));
  const StoreOptions options{.endpoint = server->url(""),
                             .credentials = {.access_key = "key", .secret_key = "secret"}};
  return {open_store("s3://bucket/root", options).value().store, "s3://bucket/root", nullptr,
          server};
}
#endif
Fixture cached(Fixture inner, bool full = false) {
  auto folder = std::make_shared<TestFolder>();
  inner.store =
      CacheStore::make(inner.store, {.folder = *folder / "cache", .keep_free = 0}).value();
  for (const auto& [name, content] : kFiles)
    if (full) (void)inner.store->read_all(join_path(inner.root, name)).ok();
  // The last reference to what the store reads goes with it.
  return {std::shared_ptr<const Store>(
              inner.store.get(), [folder, data = inner.folder,
                                  store = inner.store](const Store*) mutable { store = nullptr; }),
          inner.root, folder};
}

Fixture staged(Fixture inner) {
  auto folder = std::make_shared<TestFolder>();
  std::vector<std::string> files;
  for (const auto& [name, content] : kFiles) files.push_back(join_path(inner.root, name));
  const auto store = StagedStore::make(inner.store, files, {.folder = *folder / "stage"}).value();
  EXPECT_TRUE(store->wait_until_staged().ok());
  return {store, inner.root, folder};
}

class PlainWrapper final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
};

struct Row {
  std::string_view name;
  Fixture (*make)();
  bool answers = true;
};
constexpr Row kStores[] = {
    {"local", local},
    {"one_descriptor", one_descriptor},
    {"memory", [] { return memory(); }},
    {"pages_of_two", [] { return memory(2); }},
    {"wrapper", [] { return around<PlainWrapper>(local()); }},
    {"fault_without_faults", [] { return around<FaultStore>(local()); }},
    {"held", [] { return held(true); }},
    {"held_in_part", [] { return held(false); }},
    {"latency", [] { return latency({.latency = 200us, .bytes_per_second = 1 << 20}); }},
    {"shared_bandwidth",
     [] { return latency({.latency = 100us, .total_bytes_per_second = 1 << 20, .threads = 1}); }},
    {"fail_later", fail_later},
#ifdef HEADRACE_HAVE_CURL
    {"http", http},
    {"s3", s3},
    {"hf", hf},
    {"mixed_http", [] { return mixed(http()); }},
#endif
    {"mixed", [] { return mixed(local()); }},
    {"staged", [] { return staged(memory()); }},
    {"cache", [] { return cached(memory()); }},
    {"cache_that_is_full", [] { return cached(local(), true); }},
    {"cache_of_far", [] { return cached(latency({.latency = 200us})); }},
    {"cache_of_silent", [] { return cached(around<SilentStore>(memory())); }, false},
    {"routed", [] { return routed(local()); }},
    {"routed_twice", [] { return routed(routed(local())); }},
    {"routed_and_slow", [] { return routed(latency({.latency = 100us})); }},
    {"versioned", versioned},
    {"kept", kept},
    {"silent", [] { return around<SilentStore>(memory()); }, false},
};

std::vector<ReadPiece> pieces_at(
    std::initializer_list<std::pair<uint64_t, uint64_t>> begins_and_lengths) {
  std::vector<ReadPiece> out;
  for (const auto& [begin, length] : begins_and_lengths) {
    ReadPiece& piece = out.emplace_back();
    piece.begin = begin;
    piece.length = length;
  }
  return out;
}

std::vector<std::string> texts_of(const ReadRequest& request) {
  std::vector<std::string> out;
  for (const ReadPiece& piece : request.pieces) out.emplace_back(as_text(piece.into.bytes()));
  return out;
}

// Requests that came back, by the number they went with.  Each must come back once.
class Collector {
 public:
  explicit Collector(size_t count) : got_(count), times_(count) {}
  std::function<void(ReadRequest&&)> next() {
    return [this, number = made_++](ReadRequest&& request) {
      MutexLock lock(mu_);
      got_[number] = std::move(request);
      ++times_[number];
      ++done_;
      came_.notify_all();
    };
  }
  // False when not all came in time.
  bool wait(std::chrono::milliseconds most = 10s) {
    const auto until = std::chrono::steady_clock::now() + most;
    MutexLock lock(mu_);
    while (done_ < got_.size() && std::chrono::steady_clock::now() < until)
      (void)came_.wait_for_ms(mu_, 5);
    return done_ == got_.size() &&
           std::all_of(times_.begin(), times_.end(), [](int n) { return n == 1; });
  }
  size_t done() const {
    MutexLock lock(mu_);
    return done_;
  }
  ReadRequest& operator[](size_t i) { return got_[i]; }

 private:
  std::vector<ReadRequest> got_;
  std::vector<int> times_;
  size_t made_ = 0;
  mutable Mutex mu_;
  CondVar came_;
  size_t done_ HEADRACE_GUARDED_BY(mu_) = 0;
};

class StoreConformance : public ::testing::TestWithParam<Row> {
 protected:
  Fixture f_ = GetParam().make();
  const Store& store() const { return *f_.store; }
  std::string at(std::string_view name) const { return join_path(f_.root, name); }
};

// Those that are about the bytes.
class AnsweringStore : public StoreConformance {
 protected:
  ReadRequest read(ReadRequest request) {
    Collector got(1);
    request.done = got.next();
    store().read({&request, 1});
    EXPECT_TRUE(got.wait());
    return std::move(got[0]);
  }
};

TEST(StoreTable, every_row_is_under_this_suite) {
  for (const StoreKind* kind : all_stores()) {
    EXPECT_TRUE(std::any_of(std::begin(kStores), std::end(kStores),
                            [kind](const Row& row) { return row.name == kind->name; }))
        << "add a fixture for " << kind->name;
    EXPECT_FALSE(kind->schemes.empty() || kind->purpose.empty());
  }
}

TEST_P(AnsweringStore, a_range_is_exact) {
  Buffer out;
  ASSERT_TRUE(store().read_at(at("a.bin"), 3, 4, out).ok());
  EXPECT_EQ(as_text(out.bytes()), "3456");
  ASSERT_TRUE(store().read_at(at("a.bin"), 10, 0, out).ok());
  EXPECT_EQ(out.size(), 0u);
}

TEST_P(AnsweringStore, a_whole_file_is_whole) {
  EXPECT_EQ(as_text(store().read_all(at("a.bin")).value().bytes()), "0123456789");
  EXPECT_EQ(as_text(store().read_all(at("sub/b.bin")).value().bytes()), "bee");
  EXPECT_EQ(store().read_all(at("empty")).value().size(), 0u);
}

// Lengths and offsets come from files: no memory is taken for what is not there.
TEST_P(AnsweringStore, far_past_the_end_is_corrupt) {
  Buffer out;
  constexpr uint64_t kHuge = uint64_t{1} << 60;
  // A store that is slow for its bytes would take its time over these.
  const bool is_slow = !store().cost(at("a.bin")).in_caller;
  for (const auto& [offset, length] :
       {std::pair<uint64_t, uint64_t>{8, kHuge}, {kHuge, kHuge}, {~uint64_t{0} - 1, 1}}) {
    if (is_slow && length == kHuge) continue;
    const Status s = store().read_at(at("a.bin"), offset, length, out);
    EXPECT_EQ(s.code(), Code::kCorrupt) << s.text();
    EXPECT_EQ(s.place().file, plain_path(at("a.bin")));
    EXPECT_LE(out.capacity(), 4096u);
  }
}

TEST_P(AnsweringStore, past_the_end_is_corrupt_and_names_path_and_offset) {
  Buffer out;
  for (const auto& [offset, length] : {std::pair<uint64_t, uint64_t>{8, 3}, {11, 1}}) {
    const Status s = store().read_at(at("a.bin"), offset, length, out);
    EXPECT_EQ(s.code(), Code::kCorrupt);
    EXPECT_EQ(s.place().file, plain_path(at("a.bin")));
    EXPECT_GE(s.place().offset, 0);
  }
}

TEST_P(AnsweringStore, a_missing_file_is_not_found) {
  Buffer out;
  EXPECT_EQ(store().read_at(at("none"), 0, 1, out).code(), Code::kNotFound);
  const Status whole = store().read_all(at("none")).status();
  EXPECT_EQ(whole.code(), Code::kNotFound);
  EXPECT_EQ(whole.place().file, plain_path(at("none")));
}

TEST_P(StoreConformance, what_is_missing_is_not_found) {
  EXPECT_EQ(store().stat(at("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(store().stat(at("none")).status().place().file, plain_path(at("none")));
  EXPECT_EQ(store().list(at("none")).status().code(), Code::kNotFound);
}

TEST_P(AnsweringStore, each_of_a_batch_is_done_once_and_stamped) {
  Collector got(3);
  std::vector<ReadRequest> batch;
  for (const auto& [name, offset] : {std::pair{"a.bin", 0u}, {"none", 0u}, {"a.bin", 8u}})
    batch.push_back({.path = at(name), .offset = offset, .length = 2, .done = got.next()});
  const uint64_t before = steady_ns();
  const bool in_caller = store().cost(at("a.bin")).in_caller;
  store().read(batch);
  if (in_caller) {
    EXPECT_EQ(got.done(), 3u) << "the cost says that the caller waits";
  }
  ASSERT_TRUE(got.wait());
  EXPECT_TRUE(got[0].status.ok());
  EXPECT_EQ(got[1].status.code(), Code::kNotFound);
  EXPECT_EQ(as_text(got[2].into.bytes()), "89");
  for (const size_t i : {0u, 1u, 2u}) {
    EXPECT_GE(got[i].sent_ns, before);
    EXPECT_GE(got[i].completed_ns, got[i].sent_ns);
    EXPECT_LE(got[i].completed_ns, steady_ns());
  }
}

TEST_P(AnsweringStore, memory_that_was_handed_over_is_used_and_comes_back) {
  for (const auto& [name, length] : {std::pair<std::string_view, uint64_t>{"a.bin", 4},
                                     {"a.bin", kWholeFile},
                                     {"a.bin", 11},
                                     {"none", 1}}) {
    Buffer memory(4096);
    const std::byte* where = memory.data();
    const ReadRequest got = read({.path = at(name), .length = length, .into = std::move(memory)});
    EXPECT_EQ(got.into.data(), where) << got.status.text();
    EXPECT_GE(got.into.capacity(), 4096u);
    EXPECT_EQ(plain_path(got.path), plain_path(at(name)));
  }
}

TEST_P(AnsweringStore, a_version_goes_out_with_the_file_and_comes_back_with_the_bytes) {
  const std::string version = store().stat(at("a.bin")).value().version;
  ASSERT_FALSE(version.empty());
  for (const uint64_t length : {uint64_t{2}, kWholeFile}) {
    const ReadRequest same = read({.path = at("a.bin"), .length = length, .version = version});
    ASSERT_TRUE(same.status.ok()) << same.status.text();
    EXPECT_EQ(same.version, version);
    const ReadRequest any = read({.path = at("a.bin"), .length = length});
    EXPECT_TRUE(any.version.empty() || any.version == version) << any.version;
    const ReadRequest other = read({.path = at("a.bin"), .length = length, .version = "other"});
    EXPECT_EQ(other.status.code(), Code::kCorrupt);
    EXPECT_EQ(other.status.place().file, plain_path(at("a.bin")));
    EXPECT_NE(other.status.text().find("changed"), std::string::npos) << other.status.text();
  }
}

TEST_P(AnsweringStore, pieces_are_what_a_plain_read_has_there) {
  struct Cut {
    uint64_t offset, length;
    std::vector<ReadPiece> pieces;
    std::vector<std::string> texts;
  };
  Cut cuts[] = {
      {0, 10, pieces_at({{0, 10}}), {"0123456789"}},
      {2, 8, pieces_at({{0, 3}, {3, 5}}), {"234", "56789"}},  // one beside the other
      {1, 8, pieces_at({{1, 2}, {5, 1}}), {"23", "6"}},       // with gaps, and at both ends
      {0, 9, pieces_at({{0, 0}, {4, 1}, {5, 0}, {9, 0}}), {"", "4", "", ""}},
      {3, 4, pieces_at({{1, 0}}), {""}},
      {4, 0, pieces_at({{0, 0}}), {""}},
  };
  for (Cut& cut : cuts) {
    const ReadRequest got = read({.path = at("a.bin"),
                                  .offset = cut.offset,
                                  .length = cut.length,
                                  .pieces = std::move(cut.pieces)});
    ASSERT_TRUE(got.status.ok()) << got.status.text();
    EXPECT_EQ(texts_of(got), cut.texts);
    EXPECT_EQ(got.into.size(), 0u);
    EXPECT_EQ(got.bytes_read(), cut.length);
  }
}

TEST_P(AnsweringStore, memory_of_pieces_is_used_and_comes_back) {
  for (const auto& [name, length] :
       {std::pair<std::string_view, uint64_t>{"a.bin", 8}, {"a.bin", 11}, {"none", 8}}) {
    std::vector<ReadPiece> pieces = pieces_at({{0, 2}, {4, 0}, {5, 3}});
    std::vector<const std::byte*> where;
    for (ReadPiece& piece : pieces) {
      piece.into.resize(64);  // what it held before is of no account
      std::memset(piece.into.data(), 'x', 64);
      where.push_back(piece.into.data());
    }
    const ReadRequest got = read({.path = at(name), .length = length, .pieces = std::move(pieces)});
    EXPECT_EQ(got.status.ok(), length == 8 && name == "a.bin") << got.status.text();
    if (got.status.ok()) {
      EXPECT_EQ(texts_of(got), (std::vector<std::string>{"01", "", "567"}));
    }
    ASSERT_EQ(got.pieces.size(), 3u);
    for (size_t k = 0; k < 3; ++k) EXPECT_EQ(got.pieces[k].into.data(), where[k]);
  }
}

// A store around this one may have tried to read the range from elsewhere.
TEST_P(AnsweringStore, what_the_range_held_before_is_in_no_piece) {
  Buffer other(8);
  std::memset(other.data(), 'x', other.size());
  const ReadRequest got = read({.path = at("a.bin"),
                                .length = 8,
                                .into = std::move(other),
                                .pieces = pieces_at({{0, 2}, {5, 3}})});
  ASSERT_TRUE(got.status.ok()) << got.status.text();
  EXPECT_EQ(texts_of(got), (std::vector<std::string>{"01", "567"}));
}

TEST_P(AnsweringStore, a_range_past_the_end_fails_though_its_pieces_are_there) {
  for (const auto& [offset, length] : {std::pair<uint64_t, uint64_t>{0, 11}, {8, 3}}) {
    const ReadRequest got = read({.path = at("a.bin"),
                                  .offset = offset,
                                  .length = length,
                                  .pieces = pieces_at({{0, 1}, {1, 1}})});
    EXPECT_EQ(got.status.code(), Code::kCorrupt);
    EXPECT_EQ(got.status.place().file, plain_path(at("a.bin")));
    EXPECT_GE(got.status.place().offset, 0);
  }
  const ReadRequest other =
      read({.path = at("a.bin"), .length = 2, .pieces = pieces_at({{0, 2}}), .version = "other"});
  EXPECT_EQ(other.status.code(), Code::kCorrupt);
}

TEST_P(AnsweringStore, pieces_outside_of_their_range_are_refused) {
  for (auto& pieces : {pieces_at({{7, 2}}), pieces_at({{~uint64_t{0}, 1}}),
                       pieces_at({{0, 1}, {1, ~uint64_t{0}}})}) {
    std::vector<ReadPiece> own;
    for (const ReadPiece& piece : pieces) {
      own.emplace_back();
      own.back().begin = piece.begin;
      own.back().length = piece.length;
    }
    const ReadRequest got =
        read({.path = at("a.bin"), .offset = 1, .length = 8, .pieces = std::move(own)});
    EXPECT_EQ(got.status.code(), Code::kInternal) << got.status.text();
  }
}

// Many at once, of which some fail, among plain ones of the same file.
TEST_P(AnsweringStore, pieces_of_many_at_once_do_not_mix) {
  constexpr size_t kReads = 120;
  Collector got(kReads);
  std::vector<ReadRequest> batch;
  for (size_t i = 0; i < kReads; ++i) {
    ReadRequest& request = batch.emplace_back();
    request.path = at(i % 10 == 9 ? "none" : "a.bin");
    request.offset = i % 5;
    request.length = 5 + (i % 7 == 6 ? 6 : 0);  // some go past the end
    if (i % 3 != 0) request.pieces = pieces_at({{0, i % 2}, {2, 1}, {3, 2}});
    request.done = got.next();
  }
  store().read(batch);
  ASSERT_TRUE(got.wait());
  const std::string_view content = kFiles[0].second;
  for (size_t i = 0; i < kReads; ++i) {
    if (i % 10 == 9 || i % 7 == 6) {
      EXPECT_EQ(got[i].status.code(), i % 10 == 9 ? Code::kNotFound : Code::kCorrupt) << i;
      continue;
    }
    ASSERT_TRUE(got[i].status.ok()) << got[i].status.text();
    const std::string range(content.substr(i % 5, 5));
    const std::vector<std::string> cut{range.substr(0, i % 2), range.substr(2, 1), range.substr(3)};
    EXPECT_EQ(as_text(got[i].into.bytes()), i % 3 == 0 ? range : "");
    EXPECT_EQ(texts_of(got[i]), i % 3 == 0 ? std::vector<std::string>() : cut);
  }
}

// After done() nobody writes to the memory, which is then another's.
TEST_P(StoreConformance, cancelled_pieces_come_back_and_are_left_alone) {
  constexpr size_t kReads = 200;
  Collector got(kReads + 1);
  const auto group = std::make_shared<ReadGroup>();
  std::vector<ReadRequest> batch;
  for (size_t i = 0; i < kReads; ++i) {
    ReadRequest& request = batch.emplace_back();
    request.path = at("a.bin");
    request.length = 10;
    request.pieces = pieces_at({{0, 4}, {6, 3}});
    request.group = group;
    request.done = [next = got.next()](ReadRequest&& done) {
      if (!done.status.ok())
        for (ReadPiece& piece : done.pieces) {
          piece.into.resize(16);
          std::memset(piece.into.data(), '!', 16);
        }
      next(std::move(done));
    };
  }
  store().read(batch);
  group->cancel();
  store().cancel(*group);
  ReadRequest late{.path = at("a.bin"), .length = 5, .pieces = pieces_at({{0, 5}}), .group = group};
  late.done = got.next();
  store().read({&late, 1});
  ASSERT_TRUE(got.wait());
  f_.store = nullptr;  // whatever it still did is over
  for (size_t i = 0; i < kReads; ++i) {
    ASSERT_EQ(got[i].pieces.size(), 2u);
    if (got[i].status.ok()) {
      EXPECT_EQ(texts_of(got[i]), (std::vector<std::string>{"0123", "678"}));
    } else {
      EXPECT_EQ(got[i].status.code(), Code::kCancelled);
      EXPECT_EQ(texts_of(got[i]), std::vector<std::string>(2, std::string(16, '!')));
    }
  }
  EXPECT_EQ(got[kReads].status.code(), Code::kCancelled);
  EXPECT_EQ(got[kReads].pieces.size(), 1u);
}

TEST_P(StoreConformance, a_cancelled_group_completes_at_once_and_so_does_what_comes_after) {
  constexpr size_t kReads = 100;
  Collector got(kReads + 1);
  const auto group = std::make_shared<ReadGroup>();
  std::vector<ReadRequest> batch;
  for (size_t i = 0; i < kReads; ++i)
    batch.push_back({.path = at("a.bin"), .length = 5, .group = group, .done = got.next()});
  store().read(batch);
  group->cancel();
  const auto begin = std::chrono::steady_clock::now();
  store().cancel(*group);
  Buffer memory(64);
  const std::byte* where = memory.data();
  ReadRequest late{.path = at("a.bin"),
                   .length = 5,
                   .into = std::move(memory),
                   .group = group,
                   .done = got.next()};
  store().read({&late, 1});
  ASSERT_TRUE(got.wait());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  for (size_t i = 0; i < kReads; ++i)
    EXPECT_TRUE(got[i].status.ok() || got[i].status.code() == Code::kCancelled);
  EXPECT_EQ(got[kReads].status.code(), Code::kCancelled);
  EXPECT_EQ(got[kReads].into.data(), where);
}

TEST_P(AnsweringStore, other_groups_are_left_alone) {
  Collector got(2);
  const auto given_up = std::make_shared<ReadGroup>();
  const auto kept = std::make_shared<ReadGroup>();
  std::vector<ReadRequest> batch;
  batch.push_back({.path = at("a.bin"), .length = 5, .group = kept, .done = got.next()});
  batch.push_back({.path = at("a.bin"), .length = 5, .done = got.next()});
  store().read(batch);
  given_up->cancel();
  store().cancel(*given_up);
  ASSERT_TRUE(got.wait());
  EXPECT_TRUE(got[0].status.ok());
  EXPECT_TRUE(got[1].status.ok());
}

// Done exactly once, whatever comes first; destroying the store completes the rest.
TEST_P(StoreConformance, cancelling_while_others_read_loses_nothing) {
  constexpr size_t kRounds = 50;
  constexpr size_t kReads = 8;
  Collector got(kRounds * kReads);
  std::vector<std::shared_ptr<ReadGroup>> groups(kRounds);
  for (auto& group : groups) group = std::make_shared<ReadGroup>();
  std::vector<std::vector<ReadRequest>> batches(kRounds);
  for (size_t r = 0; r < kRounds; ++r)
    for (size_t i = 0; i < kReads; ++i)
      batches[r].push_back(
          {.path = at("a.bin"), .length = 3, .group = groups[r], .done = got.next()});
  {
    const std::jthread reads([&] {
      for (auto& batch : batches) store().read(batch);
    });
    const std::jthread cancels([&] {
      for (auto& group : groups) {
        group->cancel();
        store().cancel(*group);
      }
    });
  }
  EXPECT_TRUE(got.wait());
}

TEST_P(StoreConformance, stats_come_in_the_order_of_the_paths) {
  const std::vector<std::string> paths{at("sub"), at("none"), at("a.bin"), at("empty")};
  const auto found = store().stat_all(paths);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_TRUE(found[0].value().is_folder);
  EXPECT_EQ(found[1].status().code(), Code::kNotFound);
  EXPECT_EQ(found[2].value().bytes, 10u);
  EXPECT_FALSE(found[2].value().is_folder);
  EXPECT_EQ(found[2].value().path, at("a.bin"));
  EXPECT_EQ(found[3].value().bytes, 0u);
  EXPECT_TRUE(store().stat_all({}).empty());
}

TEST_P(StoreConformance, a_listing_is_sorted_by_bytes_with_whole_paths) {
  const auto entries = store().list(f_.root).value();
  std::vector<std::string> paths;
  for (const FileInfo& entry : entries) paths.push_back(entry.path);
  EXPECT_EQ(paths, (std::vector<std::string>{at("Z"), at("a.bin"), at("empty"), at("sub"),
                                             at("sub.txt")}));
  EXPECT_TRUE(entries[3].is_folder);
  EXPECT_FALSE(entries[0].is_folder);
  EXPECT_EQ(store().list(f_.root + '/').value().size(), entries.size());
}

TEST_P(StoreConformance, pages_go_on_where_the_last_one_ended) {
  std::vector<std::string> paths;
  std::string after;
  do {
    const ListPage page = store().list_page(f_.root, after).value();
    for (const FileInfo& entry : page.entries) paths.push_back(entry.path);
    after = page.next;
  } while (!after.empty() && paths.size() < 100);
  EXPECT_EQ(paths.size(), 5u);
  EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()));
  EXPECT_EQ(std::adjacent_find(paths.begin(), paths.end()), paths.end());
}

TEST_P(AnsweringStore, what_is_lent_stays_while_it_is_held) {
  std::optional<Pin> pin = store().pin(at("a.bin"), 2, 5);
  EXPECT_FALSE(store().pin(at("a.bin"), 8, 5).has_value());
  EXPECT_FALSE(store().pin(at("a.bin"), ~uint64_t{0} - 1, 5).has_value());
  EXPECT_FALSE(store().pin(at("none"), 0, 1).has_value());
  EXPECT_EQ(pin.has_value(), GetParam().name.starts_with("held"));
  if (!pin) return;
  f_.store = nullptr;
  EXPECT_EQ(as_text(pin->bytes()), "23456");
}

TEST_P(AnsweringStore, what_is_resident_is_what_would_be_read) {
  for (const uint64_t length : {uint64_t{4}, kWholeFile}) {
    ReadRequest request{.path = at("a.bin"), .length = length, .done = [](ReadRequest&&) {
                          ADD_FAILURE() << "done() was called";
                        }};
    if (store().read_if_resident(request)) {
      EXPECT_EQ(as_text(request.into.bytes()), length == 4 ? "0123" : "0123456789");
    }
  }
  ReadRequest none{.path = at("none"), .length = 1};
  EXPECT_FALSE(store().read_if_resident(none));
  ReadRequest past{.path = at("a.bin"), .offset = 9, .length = 2};
  EXPECT_FALSE(store().read_if_resident(past));
  ReadRequest other{.path = at("a.bin"), .length = 2, .version = "other"};
  EXPECT_FALSE(store().read_if_resident(other));
}

TEST_P(AnsweringStore, threads_read_at_once) {
  const int rounds = store().cost(at("a.bin")).in_caller ? 500 : 50;
  std::vector<std::jthread> threads;
  std::atomic<int> bad{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Buffer out;
      for (int i = 0; i < rounds; ++i) {
        const auto& [name, content] = kFiles[static_cast<size_t>(i + t) % std::size(kFiles)];
        if (!store().read_at(at(name), 0, content.size(), out).ok() ||
            as_text(out.bytes()) != content)
          ++bad;
      }
    });
  threads.clear();
  EXPECT_EQ(bad, 0);
}

std::vector<Row> those_that_answer() {
  std::vector<Row> out;
  std::copy_if(std::begin(kStores), std::end(kStores), std::back_inserter(out),
               [](const Row& row) { return row.answers; });
  return out;
}

std::string name_of(const ::testing::TestParamInfo<Row>& row) {
  return std::string(row.param.name);
}

INSTANTIATE_TEST_SUITE_P(All, StoreConformance, ::testing::ValuesIn(kStores), name_of);
INSTANTIATE_TEST_SUITE_P(All, AnsweringStore, ::testing::ValuesIn(those_that_answer()), name_of);

}  // namespace
}  // namespace headrace

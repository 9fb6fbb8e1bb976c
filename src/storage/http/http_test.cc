// SPDX-License-Identifier: Apache-2.0
//
// What the http store does when servers misbehave; conformance_test.cc has what all stores promise.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "storage/first_batch.h"
#include "storage/http/index_page.h"
#include "storage/http/late_answer.h"
#include "storage/http/message.h"
#include "storage/http/pool_limit.h"
#include "storage/http/test_server.h"
#include "storage/http/url.h"
#include "storage/open_store.h"
#include "storage/stat_memo.h"
#include "trace/notices.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEADRACE_THREAD_SANITIZER
#endif
#endif

namespace headrace {
namespace {

using namespace std::chrono_literals;

#if defined(HEADRACE_THREAD_SANITIZER) || defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

constexpr std::string_view kBusy = "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n";
const StoreOptions kQuick{.backoff_s = 0.001};

class HttpStore : public ::testing::Test {
 protected:
  HttpStore() { server_.put("/f", "0123456789"); }
  Status read(const StoreOptions& options = kQuick, uint64_t offset = 3, uint64_t length = 4) {
    const OpenedUrl at = open_store(server_.url("/f"), options).value();
    return at.store->read_at(at.path, offset, length, got_);
  }
  std::string text() const { return std::string(as_text(got_.bytes())); }
  TestServer server_;
  Buffer got_;
};

// The n-th answer is `text`, all others are right.
TestServer::Answer nth(size_t n, std::string text) {
  return [n, text = std::move(text)](const Asked& asked) -> std::optional<std::string> {
    return asked.number == n ? std::optional(text) : std::nullopt;
  };
}

TEST_F(HttpStore, what_fails_in_passing_is_asked_for_again) {
  for (const std::string_view odd :
       {kBusy, std::string_view("HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n"),
        std::string_view("HTTP/1.1 206 x\r\nContent-Range: bytes 3-6/10\r\n"
                         "Content-Length: 4\r\nConnection: close\r\n\r\n34"),
        std::string_view("HTTP/1.1 206 x\r\nContent-Range: bytes 3-6/10\r\n"
                         "Connection: close\r\n\r\n34"),
        std::string_view("HTTP/1.1 206 x\r\nContent-Range: bytes 0-3/10\r\n"
                         "Content-Length: 4\r\n\r\n0123"),
        std::string_view("HTTP/1.1 206 x\r\nContent-Range: bytes 3-6/10\r\n"
                         "Content-Length: 3\r\n\r\n345"),
        std::string_view("HTTP/1.1 204 x\r\n\r\n"), std::string_view("Connection: close")}) {
    server_.answer(nth(server_.requests(), std::string(odd)));
    const size_t before = server_.requests();
    ASSERT_TRUE(read().ok()) << odd;
    EXPECT_EQ(text(), "3456");
    EXPECT_EQ(server_.requests() - before, 2u) << odd;
  }
}

TEST_F(HttpStore, what_does_not_pass_is_an_error_after_so_many_tries) {
  server_.answer([](const Asked&) { return std::string(kBusy); });
  StoreOptions options = kQuick;
  options.retries = 3;
  const Status status = read(options);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.text().find("503"), std::string::npos) << status.text();
  EXPECT_EQ(status.place().file, server_.url("/f"));
  EXPECT_EQ(server_.requests(), 4u);
}

TEST_F(HttpStore, a_server_says_when_to_come_back) {
  server_.answer(nth(0, "HTTP/1.1 429 x\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(read().ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 990ms);
}

// A blend of data sets of two servers; a list that names files of a server that nobody else does.
TEST_F(HttpStore, what_is_opened_together_gives_each_server_the_secrets_that_are_its_own) {
  TestServer other;
  other.put("/f", "abcdef");
  StoreOptions options = kQuick;
  options.token = "secret";
  options.opening = std::make_shared<OpeningMemo>();
  const auto authorization = [&](TestServer& server, std::vector<std::string> named) {
    options.named = std::move(named);
    const OpenedUrl at = open_store(server.url("/f"), options).value();
    EXPECT_TRUE(at.store->read_at(at.path, 0, 4, got_).ok());
    return server.asked().back().field("authorization");
  };
  EXPECT_EQ(authorization(server_, {server_.url("")}), "bearer secret");
  EXPECT_EQ(authorization(other, {other.url("")}), "bearer secret");
  EXPECT_EQ(authorization(other, {server_.url("")}), "");
  options.named.reset();
  (void)open_store(server_.url("/f"), options).value();
  EXPECT_EQ(authorization(other, {server_.url("")}), "") << "after one that trusts all";
  options.opening->end();  // its stores hold it
}

TEST_F(HttpStore, the_hub_gets_a_token_where_the_call_names_the_hub) {
  server_.put("/datasets/a/b/resolve/main/f", "0123");
  // NOLINTBEGIN(concurrency-mt-unsafe)
  ::setenv("HF_ENDPOINT", server_.url("").c_str(), 1);
  ::setenv("HF_HOME", "/none", 1);
  ::unsetenv("HF_TOKEN");
  ::unsetenv("HUGGING_FACE_HUB_TOKEN");
  StoreOptions options = kQuick;
  options.token = "secret";
  using Named = std::optional<std::vector<std::string>>;
  for (const Named& named :
       {Named(), Named({"hf://datasets"}), Named({"https://other"}), Named({})}) {
    options.named = named;
    const OpenedUrl at = open_store("hf://datasets/a/b/f", options).value();
    EXPECT_TRUE(at.store->read_at(at.path, 0, 4, got_).ok());
    const bool is_for_hub = !named || *named == std::vector<std::string>{"hf://datasets"};
    EXPECT_EQ(server_.asked().back().field("authorization"), is_for_hub ? "bearer secret" : "");
  }
  ::unsetenv("HF_ENDPOINT");
  ::unsetenv("HF_HOME");
  // NOLINTEND(concurrency-mt-unsafe)
}

TEST_F(HttpStore, a_file_that_changes_is_never_mixed) {
  const OpenedUrl at = open_store(server_.url("/f"), kQuick).value();
  ASSERT_TRUE(at.store->read_at(at.path, 0, 4, got_).ok());
  server_.put("/f", "abcdefghij");
  const Status status = at.store->read_at(at.path, 4, 4, got_);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.text().find("changed"), std::string::npos) << status.text();
  ASSERT_TRUE(at.store->stat(at.path).ok());  // who looks again sees what is there now
  EXPECT_TRUE(at.store->read_at(at.path, 4, 4, got_).ok());
}

TEST_F(HttpStore, redirects_to_others_carry_no_credentials) {
  TestServer other;
  other.put("/g", "0123456789");
  server_.answer([&](const Asked& asked) -> std::optional<std::string> {
    if (asked.path == "/here") return std::nullopt;
    return "HTTP/1.1 302 x\r\nContent-Length: 0\r\nLocation: " +
           (asked.path == "/f" ? server_.url("/moved") : other.url("/g")) + "\r\n\r\n";
  });
  StoreOptions options = kQuick;
  options.token = "canary";
  ASSERT_TRUE(read(options).ok());
  EXPECT_EQ(text(), "3456");
  ASSERT_EQ(server_.asked().size(), 2u);
  EXPECT_EQ(server_.asked()[0].field("authorization"), "bearer canary");
  EXPECT_EQ(server_.asked()[1].field("authorization"), "bearer canary");
  ASSERT_EQ(other.asked().size(), 1u);
  EXPECT_EQ(other.asked()[0].field("authorization"), "");
  EXPECT_EQ(other.asked()[0].field("range"), "bytes=3-6");
}

TEST_F(HttpStore, a_redirect_without_end_ends) {
  server_.answer([&](const Asked& asked) -> std::optional<std::string> {
    return "HTTP/1.1 302 x\r\nContent-Length: 0\r\nLocation: " + asked.path + "x\r\n\r\n";
  });
  EXPECT_EQ(read().code(), Code::kPermission);
}

TEST_F(HttpStore, link_local_addresses_are_refused) {
  for (const std::string_view url :
       {"http://169.254.169.254/latest/meta-data", "http://[fe80::1]/x"}) {
    const OpenedUrl at = open_store(url, kQuick).value();
    const Status status = at.store->read_at(at.path, 0, 1, got_);
    EXPECT_EQ(status.code(), Code::kPermission);
    EXPECT_NE(status.text().find("allow_link_local"), std::string::npos) << status.text();
  }
  server_.answer(nth(0,
                     "HTTP/1.1 302 x\r\nContent-Length: 0\r\n"
                     "Location: http://169.254.169.254/x\r\n\r\n"));
  EXPECT_EQ(read().code(), Code::kPermission);
}

TEST_F(HttpStore, credentials_stay_off_plain_http) {
  StoreOptions options = kQuick;
  options.token = "canary";
  const OpenedUrl at = open_store("http://example.invalid/x", options).value();
  const Status status = at.store->read_at(at.path, 0, 1, got_);
  EXPECT_EQ(status.code(), Code::kPermission);
  EXPECT_EQ(status.text().find("canary"), std::string::npos);
  const Status password = open_store("https://me:canary@host/x").status();
  EXPECT_EQ(password.code(), Code::kInvalidArgument);
  EXPECT_EQ(password.text().find("canary"), std::string::npos) << password.text();
}

TEST_F(HttpStore, a_server_that_is_not_there_is_said_soon) {
  const OpenedUrl at = open_store("http://127.0.0.1:1/x", kQuick).value();
  const auto begin = std::chrono::steady_clock::now();
  const Status status = at.store->read_at(at.path, 0, 1, got_);
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.text();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(HttpStore, a_stall_is_tried_again_reported_and_then_an_error) {
  while (next_notice(0)) continue;
  server_.answer([](const Asked& asked) -> std::optional<std::string> {
    return asked.number < 1 ? std::optional<std::string>("") : std::nullopt;
  });
  StoreOptions options = kQuick;
  options.stall_retry_s = 0.1;
  options.stall_warning_s = 0.05;
  ASSERT_TRUE(read(options).ok());
  EXPECT_EQ(text(), "3456");
  const std::optional<std::string> notice = next_notice(0);
  ASSERT_TRUE(notice.has_value());
  EXPECT_NE(notice->find("/f [3 +4]"), std::string::npos) << *notice;
  server_.answer([](const Asked&) { return std::string(); });
  options.stall_error_s = 0.35;
  const Status status = read(options);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.text().find("no byte for"), std::string::npos) << status.text();
}

TEST_F(HttpStore, the_slowest_is_asked_for_a_second_time) {
  const OpenedUrl at = open_store(server_.url("/f"), kQuick).value();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(at.store->read_at(at.path, 0, 4, got_).ok());
  server_.answer(nth(server_.requests(), ""));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(at.store->read_at(at.path, 3, 4, got_).ok());
  EXPECT_EQ(text(), "3456");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s) << "a stall is given up after 20 s";
}

// The first answer stops after some bytes of a piece; the second one brings all of them.
TEST_F(HttpStore, the_second_answer_fills_the_pieces_that_the_first_began) {
  const OpenedUrl at = open_store(server_.url("/f"), kQuick).value();
  const std::string tag = at.store->stat(at.path).value().version;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(at.store->read_at(at.path, 0, 4, got_).ok());
  server_.answer(nth(server_.requests(), fmt::format("HTTP/1.1 206 x\r\nETag: {}\r\n"
                                                     "Content-Range: bytes 1-8/10\r\n"
                                                     "Content-Length: 8\r\n\r\n1xx",
                                                     tag)));
  std::promise<ReadRequest> done;
  ReadRequest request{.path = at.path, .offset = 1, .length = 8};
  for (const auto& [begin, length] : {std::pair<uint64_t, uint64_t>{0, 2}, {3, 0}, {4, 3}}) {
    request.pieces.emplace_back();
    request.pieces.back().begin = begin;
    request.pieces.back().length = length;
  }
  request.done = [&done](ReadRequest&& r) { done.set_value(std::move(r)); };
  at.store->read({&request, 1});
  const ReadRequest got = done.get_future().get();
  ASSERT_TRUE(got.status.ok()) << got.status.text();
  EXPECT_EQ(as_text(got.pieces[0].into.bytes()), "12");
  EXPECT_EQ(got.pieces[1].into.size(), 0u);
  EXPECT_EQ(as_text(got.pieces[2].into.bytes()), "567");
}

// However many loops there are (client.h).
TEST_F(HttpStore, one_connection_is_one_for_all_files_together) {
  StoreOptions options = kQuick;
  options.connections = 1;
  const OpenedUrl at = open_store(server_.url("/f"), options).value();
  std::atomic<size_t> right{0}, left{12};
  std::vector<ReadRequest> requests(left);
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::string name = "/file" + std::to_string(i);
    server_.put(name, "0123456789");
    requests[i].path = server_.url(name);
    requests[i].offset = 3;
    requests[i].length = 4;
    requests[i].done = [&right, &left](ReadRequest&& done) {
      if (done.status.ok() && as_text(done.into.bytes()) == "3456") ++right;
      --left;
    };
  }
  at.store->read(requests);
  while (left > 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(right, requests.size());
  EXPECT_EQ(server_.connections(), 1u);
}

TEST_F(HttpStore, connections_are_used_again) {
  StoreOptions options = kQuick;
  options.hedge = false;
  const OpenedUrl at = open_store(server_.url("/f"), options).value();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(at.store->read_at(at.path, 0, 4, got_).ok());
  EXPECT_EQ(server_.connections(), 1u);
}

TEST_F(HttpStore, what_is_wanted_first_goes_first) {
  StoreOptions options = kQuick;
  options.connections = 1;
  const OpenedUrl at = open_store(server_.url("/f"), options).value();
  std::vector<ReadRequest> batch;
  std::atomic<int> left{6};
  for (const uint64_t priority : {5u, 4u, 3u, 2u, 1u, 0u})
    batch.push_back({.path = at.path,
                     .offset = priority,
                     .length = 1,
                     .priority = priority,
                     .group = std::make_shared<ReadGroup>(),  // none joins another
                     .done = [&left](ReadRequest&&) { --left; }});
  at.store->read(batch);
  while (left > 0) std::this_thread::sleep_for(1ms);
  // On a machine with many CPUs several loops send, each in its order.
  const std::vector<Asked> asked = server_.asked();
  ASSERT_EQ(asked.size(), 6u);
  for (int i = 0; i < 6; ++i)
    EXPECT_LE(std::abs(asked[static_cast<size_t>(i)].field("range")[6] - '0' - i), 3) << i;
  EXPECT_LE(asked[0].field("range")[6], '1');
}

// Ranges of one file that wait for the only connection; what became of each.  Of every request the
// range, or pieces of it.
class JoinedRanges : public HttpStore, public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr uint64_t kLength = 100;
  static constexpr std::pair<uint64_t, uint64_t> kPieces[] = {{0, 30}, {30, 1}, {40, 0}, {50, 45}};
  JoinedRanges() {
    for (int i = 0; i < 4400; ++i) content_ += static_cast<char>('a' + i * 7 % 26);
    server_.put("/g", content_);
  }
  // Each of kLength, `apart` from the next; `more` of another length at the end.
  std::vector<ReadRequest> read_all(int count, uint64_t apart, uint64_t last_length = kLength) {
    StoreOptions options = kQuick;
    options.connections = 1;
    const OpenedUrl at = open_store(server_.url("/g"), options).value();
    std::vector<ReadRequest> batch;
    std::vector<ReadRequest> got(static_cast<size_t>(count));
    std::atomic<int> left{count};
    for (int i = 0; i < count; ++i)
      batch.push_back({.path = at.path,
                       .offset = static_cast<uint64_t>(i) * (kLength + apart),
                       .length = i + 1 == count ? last_length : kLength,
                       .done = [&got, &left, i](ReadRequest&& r) {
                         got[static_cast<size_t>(i)] = std::move(r);
                         --left;
                       }});
    if (GetParam())
      for (ReadRequest& request : batch)
        for (const auto& [begin, length] : kPieces) {
          request.pieces.emplace_back();
          request.pieces.back().begin = begin;
          request.pieces.back().length = length;
        }
    at.store->read(batch);
    while (left > 0) std::this_thread::sleep_for(1ms);
    return got;
  }
  void expect_right(const ReadRequest& r) const {
    ASSERT_TRUE(r.status.ok()) << r.status.text();
    for (const ReadPiece& piece : r.pieces)
      EXPECT_EQ(as_text(piece.into.bytes()),
                std::string_view(content_).substr(r.offset + piece.begin, piece.length));
    const std::string_view range = std::string_view(content_).substr(r.offset, r.length);
    EXPECT_EQ(as_text(r.into.bytes()), GetParam() ? "" : range);
  }
  std::string content_;
};

TEST_P(JoinedRanges, those_that_wait_together_come_in_few_requests) {
  for (const uint64_t apart : {0u, 10u}) {
    const size_t before = server_.requests();
    for (const ReadRequest& r : read_all(40, apart)) expect_right(r);
    EXPECT_LE(server_.requests() - before, 20u);
  }
}

TEST_P(JoinedRanges, one_beyond_the_end_fails_alone) {
  const std::vector<ReadRequest> got = read_all(40, 10, 1000);
  for (size_t i = 0; i + 1 < got.size(); ++i) expect_right(got[i]);
  EXPECT_EQ(got.back().status.code(), Code::kCorrupt) << got.back().status.text();
}

TEST_P(JoinedRanges, an_answer_that_breaks_off_is_gone_on_with) {
  std::atomic<int> breaks{3};
  const OpenedUrl file = open_store(server_.url("/g"), kQuick).value();
  const std::string tag = file.store->stat(file.path).value().version;
  server_.answer([&](const Asked& asked) -> std::optional<std::string> {
    const std::string range = asked.field("range");  // bytes=A-B
    const size_t dash = range.find('-');
    if (dash == std::string::npos) return std::nullopt;
    const size_t first = std::stoul(range.substr(6, dash - 6));
    const size_t last = std::stoul(range.substr(dash + 1));
    if (last - first < 3 * kLength || breaks-- <= 0) return std::nullopt;
    return fmt::format(
        "HTTP/1.1 206 x\r\nETag: {}\r\nContent-Range: bytes {}-{}/{}\r\n"
        "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
        tag, first, last, content_.size(), last - first + 1,
        content_.substr(first, 2 * kLength + 50));
  });
  for (const ReadRequest& r : read_all(40, 0)) expect_right(r);
  EXPECT_LE(breaks.load(), 1);  // some did break off
}

// The try that went wrong had filled some pieces; those that were complete by then stay.
TEST_P(JoinedRanges, a_file_that_changes_between_two_tries_is_an_error) {
  const OpenedUrl file = open_store(server_.url("/g"), kQuick).value();
  const std::string tag = file.store->stat(file.path).value().version;
  std::atomic<bool> has_changed{false};
  server_.answer([&](const Asked& asked) -> std::optional<std::string> {
    const std::string range = asked.field("range");
    const size_t dash = range.find('-');
    if (dash == std::string::npos || has_changed) return std::nullopt;
    const size_t first = std::stoul(range.substr(6, dash - 6));
    const size_t last = std::stoul(range.substr(dash + 1));
    if (last - first < 3 * kLength) return std::nullopt;
    has_changed = true;
    server_.put("/g", std::string(content_.size(), '!'));
    return fmt::format(
        "HTTP/1.1 206 x\r\nETag: {}\r\nContent-Range: bytes {}-{}/{}\r\n"
        "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
        tag, first, last, content_.size(), last - first + 1,
        content_.substr(first, 2 * kLength + 50));
  });
  size_t failed = 0;
  for (const ReadRequest& r : read_all(40, 0)) {
    if (r.status.ok()) {
      expect_right(r);
    } else {
      EXPECT_EQ(r.status.code(), Code::kCorrupt) << r.status.text();
      ++failed;
    }
  }
  EXPECT_TRUE(has_changed);
  EXPECT_GT(failed, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, JoinedRanges, ::testing::Bool());

// Both wait for the only connection; the small one is of the first batch.
TEST_F(HttpStore, a_small_range_does_not_wait_for_a_large_one_beside_it) {
  const std::string content(size_t{3} << 20, 'x');
  server_.put("/large", content);
  StoreOptions options = kQuick;
  options.connections = 1;
  const OpenedUrl at = open_store(server_.url("/large"), options).value();
  std::atomic<int> left{2};
  std::vector<ReadRequest> batch(2);
  for (uint64_t k = 0; k < 2; ++k) {
    batch[k].path = at.path;
    batch[k].offset = k == 0 ? PoolLimit::kLarge : 0;
    batch[k].length = k == 0 ? 100 : PoolLimit::kLarge;
    batch[k].priority = k;
    batch[k].done = [&left](ReadRequest&& done) {
      EXPECT_TRUE(done.status.ok()) << done.status.text();
      --left;
    };
  }
  at.store->read(batch);
  while (left > 0) std::this_thread::sleep_for(1ms);
  const std::vector<Asked> asked = server_.asked();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].field("range"), fmt::format("bytes={}-{}", 1 << 20, (1 << 20) + 99));
}

TEST(FirstBatch, is_what_the_engine_says) {
  const std::shared_ptr<const ReadGroup> groups[] = {std::make_shared<ReadGroup>(),
                                                     std::make_shared<ReadGroup>()};
  ReadRequest request{.priority = 3};
  EXPECT_FALSE(is_for_first_batch(request));  // nobody's
  request.group = groups[0];
  EXPECT_FALSE(is_for_first_batch(request));
  set_first_batch(groups[0], 3);
  set_first_batch(groups[1], 4);
  EXPECT_TRUE(is_for_first_batch(request));
  request.group = groups[1];
  EXPECT_FALSE(is_for_first_batch(request));
  request.priority = 4;
  EXPECT_TRUE(is_for_first_batch(request));
}

// Answers of a far server, without waiting for one: what the store saw before says how far it is.
TEST_F(HttpStore, a_large_read_of_the_first_batch_comes_over_several_connections) {
  std::string large(size_t{2} << 20, 'x');
  for (size_t i = 0; i < large.size(); i += 1000) large[i] = static_cast<char>('a' + i / 1000 % 26);
  server_.put("/large", large);
  std::atomic<bool> is_far{true};
  server_.answer([&](const Asked&) -> std::optional<std::string> {
    if (is_far) std::this_thread::sleep_for(6ms);
    return std::nullopt;
  });
  const OpenedUrl at = open_store(server_.url("/large"), kQuick).value();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(at.store->read_at(at.path, 0, 1, got_).ok());
  is_far = false;
  const size_t before = server_.requests();
  const auto group = std::make_shared<ReadGroup>();
  set_first_batch(group, 7);
  std::atomic<int> left{2};
  std::vector<ReadRequest> requests(2);
  for (uint64_t k = 0; k < 2; ++k) {
    requests[k].path = at.path;
    requests[k].length = large.size() - 5;
    requests[k].offset = k;
    requests[k].priority = 7 + k;  // of the first batch, and of the next
    requests[k].group = group;
    requests[k].done = [&left, &large](ReadRequest&& done) {
      EXPECT_TRUE(done.status.ok()) << done.status.text();
      EXPECT_TRUE(as_text(done.into.bytes()) ==
                  std::string_view(large).substr(done.offset, done.length));
      --left;
    };
  }
  at.store->read(requests);
  while (left > 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(server_.requests() - before, 5u);  // four parts and one
}

TEST_F(HttpStore, where_nearly_all_of_a_file_is_wanted_the_file_is_asked_for) {
  std::string large(size_t{3} << 20, 'x');
  for (size_t i = 0; i < large.size(); i += 1000) large[i] = static_cast<char>('a' + i / 1000 % 26);
  server_.put("/large", large);
  const OpenedUrl at = open_store(server_.url("/large"), kQuick).value();
  ASSERT_EQ(at.store->stat(at.path).value().bytes, large.size());
  const size_t connections = server_.connections();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(at.store->read_at(at.path, 512, large.size() - 1536, got_).ok());
    EXPECT_EQ(text(), large.substr(512, large.size() - 1536));
    EXPECT_EQ(server_.asked().back().field("range"), "");
  }
  EXPECT_LE(server_.connections(), connections + 1);  // what is not wanted does not end them
  ASSERT_TRUE(at.store->read_at(at.path, 512, 1 << 20, got_).ok());
  EXPECT_NE(server_.asked().back().field("range"), "");
}

TEST_F(HttpStore, a_server_without_ranges_sends_what_is_wanted_of_the_whole) {
  server_.answer([](const Asked&) {
    return std::string("HTTP/1.1 200 x\r\nContent-Length: 10\r\n\r\n0123456789");
  });
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(text(), "3456");
  EXPECT_EQ(read(kQuick, 8, 4).code(), Code::kCorrupt);
}

TEST_F(HttpStore, destroying_the_store_completes_what_it_was_asked) {
  server_.answer([](const Asked&) { return std::string(); });
  OpenedUrl at = open_store(server_.url("/f"), kQuick).value();
  std::atomic<int> cancelled{0};
  std::vector<ReadRequest> batch;
  for (int i = 0; i < 5; ++i)
    batch.push_back({.path = at.path, .length = 1, .done = [&](ReadRequest&& r) {
                       cancelled += r.status.code() == Code::kCancelled;
                     }});
  at.store->read(batch);
  at.store = nullptr;
  EXPECT_EQ(cancelled, 5);
}

TEST_F(HttpStore, a_forked_child_reads_by_connections_of_its_own) {
  if (kThreadSanitizer) GTEST_SKIP() << "it knows no threads in a child";
  const OpenedUrl at = open_store(server_.url("/f"), kQuick).value();
  ASSERT_TRUE(at.store->read_at(at.path, 0, 4, got_).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    Buffer own;
    const bool good = at.store->read_at(at.path, 3, 4, own).ok() && as_text(own.bytes()) == "3456";
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(at.store->read_at(at.path, 0, 4, got_).ok());
  EXPECT_EQ(server_.connections(), 2u);
}

TEST(PoolLimit, grows_while_it_pays_and_goes_a_step_back) {
  PoolLimit limit(128);
  uint64_t now = 1;
  const auto run = [&](uint64_t bytes_each, uint32_t useful) {
    limit.full();
    limit.arrived(bytes_each * std::min(limit.limit(), useful));
    limit.answered();
    limit.tick(now += 200'000'001);
  };
  limit.tick(now);
  for (int i = 0; i < 20; ++i) run(1 << 20, 1000);
  EXPECT_EQ(limit.limit(), 128u);
  PoolLimit bounded(128);  // a server that gives no more to 100 than to 40
  now = 1;
  bounded.tick(now);
  uint32_t most = 0;
  for (int i = 0; i < 12; ++i) {
    bounded.full();
    bounded.arrived((uint64_t{1} << 20) * std::min(bounded.limit(), 40u));
    bounded.tick(now += 200'000'001);
    most = std::max(most, bounded.limit());
  }
  EXPECT_LT(bounded.limit(), most);
  EXPECT_GE(bounded.limit(), 40u);
}

TEST(PoolLimit, falls_by_half_where_the_server_has_enough_and_recovers) {
  PoolLimit limit(128);
  uint64_t now = 1;
  limit.tick(now);
  for (int i = 0; i < 10; ++i) limit.throttled();
  limit.tick(now += 200'000'001);
  EXPECT_EQ(limit.limit(), PoolLimit::kFirst / 2);
  for (int i = 0; i < 30; ++i) {
    limit.full();
    limit.arrived(uint64_t{1} << 20 << i % 8);
    limit.answered();
    limit.tick(now += 200'000'001);
  }
  EXPECT_GT(limit.limit(), PoolLimit::kFirst / 2);
}

TEST(PoolLimit, bears_one_in_a_hundred) {
  PoolLimit limit(128);
  uint64_t now = 1;
  limit.tick(now);
  for (int i = 0; i < 297; ++i) limit.answered();
  for (int i = 0; i < 3; ++i) limit.throttled();
  limit.tick(now += 200'000'001);
  EXPECT_EQ(limit.limit(), PoolLimit::kFirst);
}

TEST(PoolLimit, begins_with_what_the_distance_asks_for) {
  PoolLimit near(128), usual(128), far(128);
  near.began(PoolLimit::kNear - 1);
  usual.began(PoolLimit::kNear);
  far.began(PoolLimit::kFar);
  EXPECT_EQ(near.limit(), PoolLimit::kFirstNear);
  EXPECT_EQ(near.little_limit(), PoolLimit::kLittleNear);
  EXPECT_EQ(far.little_limit(), 128u);
  EXPECT_EQ(usual.limit(), PoolLimit::kFirst);
  EXPECT_EQ(far.limit(), PoolLimit::kFirstFar);
  far.began(1);  // only the first tells
  EXPECT_EQ(far.limit(), PoolLimit::kFirstFar);
  EXPECT_TRUE(usual.may_send({.requests = 100, .bytes = 1 << 20}, 1));  // not held back
  EXPECT_TRUE(near.may_send({.requests = PoolLimit::kLittleNear - 1, .bytes = 1 << 20}, 1));
  EXPECT_FALSE(near.may_send({.requests = PoolLimit::kLittleNear, .bytes = 1 << 20}, 1));
}

TEST(PoolLimit, large_reads_go_out_beside_small_ones_unless_the_server_is_near) {
  PoolLimit near(128), far(128);
  near.began(1);
  far.began(PoolLimit::kFar);
  const PoolLimit::UnderWay small{.requests = 64, .bytes = PoolLimit::kLittle};
  EXPECT_FALSE(near.may_send(small, PoolLimit::kLarge));
  EXPECT_TRUE(far.may_send(small, PoolLimit::kLarge));
  EXPECT_FALSE(far.may_send(small, PoolLimit::kLarge - 1));
  PoolLimit::UnderWay both = small;
  both.large = far.limit();
  EXPECT_FALSE(far.may_send(both, PoolLimit::kLarge));
  const bool is_beside_first = true;
  both.large = far.limit() / 3 - 1;
  EXPECT_TRUE(far.may_send(both, PoolLimit::kLarge, is_beside_first));
  both.large = far.limit() / 3 + 1;
  EXPECT_FALSE(far.may_send(both, PoolLimit::kLarge, is_beside_first));
  EXPECT_TRUE(far.may_send(both, PoolLimit::kLarge));
  EXPECT_FALSE(far.may_send({.large = far.limit()}, PoolLimit::kLarge, is_beside_first));
  EXPECT_TRUE(near.may_send({.large = 2}, PoolLimit::kLarge, is_beside_first));
  PoolLimit few(1);  // connections=1
  few.began(PoolLimit::kFar);
  EXPECT_FALSE(few.may_send({.requests = 1}, PoolLimit::kLarge));
}

TEST(PoolLimit, of_several_loops_each_begins_with_its_share) {
  PoolLimit one(64, 2), all(1, 4);
  EXPECT_EQ(one.limit(), PoolLimit::kFirst / 2);
  EXPECT_FALSE(
      one.may_send({.requests = PoolLimit::kFirst / 2, .bytes = PoolLimit::kLittle / 2}, 1));
  one.began(PoolLimit::kFar);
  EXPECT_EQ(one.limit(), PoolLimit::kFirstFar / 2);
  EXPECT_EQ(all.limit(), 1u);
  all.began(1);
  EXPECT_EQ(all.limit(), 1u);
}

constexpr uint64_t kAnswersIn = 50'000'000;  // ns
constexpr uint64_t kRun = uint64_t{4} << 20;

TEST(LateAnswers, are_those_that_take_three_times_as_long_as_others) {
  const UsualAnswer usual{.first_byte_ns = kAnswersIn, .bytes_a_second = 100'000'000};
  EXPECT_LT(late_after_ns(usual, false, kRun), 100'000'000);
  EXPECT_GT(late_after_ns(usual, true, kRun), 3 * 41'000'000);
  EXPECT_LT(late_after_ns(usual, true, kRun), 400'000'000);
}

// The first ones that were complete were quick, since they were small or alone.
TEST(LateAnswers, are_not_those_that_share_a_slow_wire) {
  UsualAnswer usual{.first_byte_ns = kAnswersIn, .bytes_a_second = 100'000'000};
  usual.others.assign(31, 3'000'000);
  EXPECT_GT(late_after_ns(usual, true, kRun), 3'000'000'000);
  usual.bytes_a_second = 0;
  EXPECT_GT(late_after_ns(usual, true, kRun), 3'000'000'000);
  usual.others = {0, 90'000'000, 100'000'000};  // one that hangs says nothing of the others
  EXPECT_LT(late_after_ns(usual, true, kRun), 500'000'000);
}

TEST(LateAnswers, are_unknown_where_there_is_nothing_to_compare_a_large_one_with) {
  const UsualAnswer usual{.first_byte_ns = kAnswersIn};
  EXPECT_FALSE(late_after_ns(usual, true, kRun).has_value());
  EXPECT_TRUE(late_after_ns(usual, true, 100'000).has_value());
  EXPECT_TRUE(late_after_ns(usual, false, kRun).has_value());
}

TEST(WebUrls, are_taken_apart) {
  const WebUrl url = parse_web_url("HTTPS://me:pw@Host.org:8443/a%20b/c?x=1&y#z").value();
  EXPECT_EQ(url.user, "me:pw");
  EXPECT_EQ(url.origin(), "https://host.org:8443");
  EXPECT_EQ(url.text(), "https://host.org:8443/a%20b/c?x=1&y");
  EXPECT_EQ(parse_web_url("http://h:80").value().text(), "http://h/");
  EXPECT_EQ(parse_web_url("http://[::1]:9/x").value().host, "[::1]");
  for (const char* bad :
       {"ftp://h/", "http:///x", "http://h:x/", "http://h:/", "http://a b/", "http://h:65536/"})
    EXPECT_FALSE(parse_web_url(bad).ok()) << bad;
  EXPECT_EQ(encoded_path("/a b/ü%20"), "/a%20b/%C3%BC%20");
  EXPECT_EQ(percent_encoded("a/b c", true), "a/b%20c");
  EXPECT_EQ(resolve_url(url, "d").value().text(), "https://host.org:8443/a%20b/d");
  EXPECT_EQ(resolve_url(url, "//o/d").value().text(), "https://o/d");
  EXPECT_EQ(resolve_url(url, "../e/./f").value().text(), "https://host.org:8443/e/f");
  EXPECT_EQ(resolve_url(url, "/a/../../g").value().text(), "https://host.org:8443/g");
  EXPECT_EQ(resolve_url(url, "?v=2").value().text(), "https://host.org:8443/a%20b/c?v=2");
  EXPECT_EQ(resolve_url(url, "d e?n=f g").value().text(),
            "https://host.org:8443/a%20b/d%20e?n=f%20g");
}

TEST(WebMessages, ranges_times_and_waits_are_read) {
  EXPECT_EQ(parse_content_range("bytes 3-6/10")->total, 10u);
  EXPECT_FALSE(parse_content_range("bytes 3-6/*")->total.has_value());
  for (const char* bad : {"", "bytes 6-3/10", "bytes 3-6/6", "bytes 3-6", "items 1-2/3"})
    EXPECT_FALSE(parse_content_range(bad).has_value()) << bad;
  EXPECT_EQ(parse_web_time_ns("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777'000'000'000);
  EXPECT_EQ(parse_web_time_ns("1994-11-06T08:49:37.250Z"), 784111777'250'000'000);
  EXPECT_EQ(parse_retry_after("7", 0), 7.0);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111770), 7.0);
  EXPECT_FALSE(parse_retry_after("soon", 0).has_value());
}

TEST(IndexPages, of_usual_servers_are_read_and_others_are_not) {
  const auto found = parse_index_page(
      "<title>Index of /d/</title><a href=\"?C=N;O=D\">Name</a><a href=\"../\">..</a>"
      "<a href=\"b%20c.tar\">b c.tar</a><a href=\"sub/\">sub/</a><a href=\"/x\">x</a>"
      "<a href=\"a&amp;b\">a</a><a href=\"https://o/\">o</a>");
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ((*found)[0].name, "a&b");
  EXPECT_EQ((*found)[1].name, "b c.tar");
  EXPECT_TRUE((*found)[2].is_folder);
  EXPECT_FALSE(parse_index_page("<title>Welcome</title><a href=\"x\">x</a>").has_value());
}

}  // namespace
}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "trace/spans.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <set>
#include <thread>

#include "base/json.h"
#include "trace/chrome_json.h"

namespace headrace {
namespace {

// Tracing is the whole process's: on during a test, and nothing of an earlier one left.
class SpansTest : public testing::Test {
 protected:
  SpansTest() {
    collect_spans();
    lost_ = lost_spans();
    set_tracing(true);
  }
  ~SpansTest() override {
    set_tracing(false);
    collect_spans();
  }
  uint64_t lost() const { return lost_spans() - lost_; }

  uint64_t lost_ = 0;
};

TEST_F(SpansTest, ASpanSaysWhatWhoAndFromWhenToWhen) {
  const uint64_t before = steady_ns();
  std::thread([] {
    name_this_thread("hr-decode-3");
    Span outer(Stage::kDecode, 17);
    {
      Span inner(Stage::kOpen, 17, 4000);
    }
    outer.set_bytes(123);
  }).join();
  const uint64_t after = steady_ns();
  const std::vector<SpanRecord> spans = collect_spans();
  ASSERT_EQ(spans.size(), 2u);
  const SpanRecord& outer = spans[0];
  const SpanRecord& inner = spans[1];
  EXPECT_EQ(outer.stage, Stage::kDecode);
  EXPECT_EQ(outer.thread, "hr-decode-3");
  EXPECT_EQ(outer.batch, 17u);
  EXPECT_EQ(outer.bytes, 123u);
  EXPECT_FALSE(outer.overlaps);
  EXPECT_EQ(inner.stage, Stage::kOpen);
  EXPECT_EQ(inner.bytes, 4000u);
  EXPECT_EQ(inner.thread_id, outer.thread_id);
  EXPECT_LE(before, outer.begin_ns);
  EXPECT_LE(outer.begin_ns, inner.begin_ns);
  EXPECT_LE(inner.begin_ns, inner.end_ns);
  EXPECT_LE(inner.end_ns, outer.end_ns);
  EXPECT_LE(outer.end_ns, after);
  EXPECT_TRUE(collect_spans().empty()) << "each is collected once";
}

TEST_F(SpansTest, OffNothingIsRecorded) {
  set_tracing(false);
  {
    Span span(Stage::kRead);
  }
  record_span(Stage::kRead, 1, 2);
  EXPECT_TRUE(collect_spans().empty());
  set_tracing(true);
  record_span(Stage::kRead, 100, 250, kNoBatch, UINT64_MAX);
  const std::vector<SpanRecord> spans = collect_spans();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_TRUE(spans[0].overlaps);
  EXPECT_EQ(spans[0].begin_ns, 100u);
  EXPECT_EQ(spans[0].end_ns, 250u);
  EXPECT_EQ(spans[0].batch, kNoBatch);
  EXPECT_EQ(spans[0].bytes, (uint64_t{1} << 56) - 1) << "as much as there is room for";
}

TEST_F(SpansTest, TheOldestAreOverwrittenAndCounted) {
  constexpr uint64_t kMore = 1000;
  for (uint64_t i = 0; i < kSpansKept + kMore; ++i) record_span(Stage::kPlan, i, i + 1, i);
  const std::vector<SpanRecord> spans = collect_spans();
  ASSERT_EQ(spans.size(), kSpansKept);
  EXPECT_EQ(spans.front().batch, kMore);
  EXPECT_EQ(spans.back().batch, kSpansKept + kMore - 1);
  EXPECT_EQ(lost(), kMore);
}

TEST_F(SpansTest, ThoseOfAnEndedThreadStayUntilCollected) {
  std::thread([] { record_span(Stage::kRead, 1, 2, 5); }).join();
  std::thread([] { record_span(Stage::kRead, 3, 4, 6); }).join();
  EXPECT_EQ(collect_spans().size(), 2u);
  EXPECT_TRUE(collect_spans().empty());
}

TEST_F(SpansTest, RingsOfEndedThreadsAreBounded) {
  constexpr uint64_t kThreads = kRingsKept + 20;
  for (uint64_t t = 0; t < kThreads; ++t)
    std::thread([t] { record_span(Stage::kRead, t, t, t); }).join();
  const std::vector<SpanRecord> spans = collect_spans();
  EXPECT_GE(spans.size(), kRingsKept);
  EXPECT_LE(spans.size(), kRingsKept + 1);
  EXPECT_EQ(spans.size() + lost(), kThreads) << "none is forgotten silently";
  EXPECT_EQ(spans.back().batch, kThreads - 1) << "the last ones stay";
}

// Every number of a span is made of one: a torn one would show.
TEST_F(SpansTest, CollectingWhileThreadsRecordTearsNone) {
  constexpr uint64_t kEach = 4 * kSpansKept;
  constexpr uint64_t kThreads = 3;
  std::atomic<uint64_t> running{kThreads};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&running, t] {
      name_this_thread("writer-" + std::to_string(t));
      for (uint64_t i = 1; i <= kEach; ++i)
        record_span(static_cast<Stage>(i % kStages), i, 2 * i, 3 * i, 4 * i);
      running.fetch_sub(1);
    });
  std::map<uint64_t, uint64_t> last;  // of each thread
  uint64_t collected = 0;
  const auto check = [&] {
    for (const SpanRecord& s : collect_spans()) {
      const uint64_t i = s.begin_ns;
      ASSERT_EQ(s.end_ns, 2 * i);
      ASSERT_EQ(s.batch, 3 * i);
      ASSERT_EQ(s.bytes, 4 * i);
      ASSERT_EQ(s.stage, static_cast<Stage>(i % kStages));
      ASSERT_GT(i, last[s.thread_id]) << "in order, none twice";
      last[s.thread_id] = i;
      ++collected;
    }
  };
  while (running.load() > 0) check();
  for (std::thread& thread : threads) thread.join();
  check();
  EXPECT_EQ(collected + lost(), kThreads * kEach);
  EXPECT_GT(collected, 0u);
}

TEST_F(SpansTest, AThreadMayBeNamedBeforeAndAfterItsFirstSpan) {
  std::thread([] {
    record_span(Stage::kRead, 1, 1);
    name_this_thread("a-name-that-is-longer-than-the-system-keeps");
    char shown[16] = {};
    pthread_getname_np(pthread_self(), shown, sizeof shown);
    EXPECT_STREQ(shown, "a-name-that-is-");
  }).join();
  std::thread([] {
    pthread_setname_np(pthread_self(), "of-others");
    record_span(Stage::kRead, 2, 2);
  }).join();
  const std::vector<SpanRecord> spans = collect_spans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].thread, "a-name-that-is-longer-than-the-");
  EXPECT_EQ(spans[1].thread, "of-others") << "what the system calls it";
}

TEST_F(SpansTest, AForkedChildBeginsWithNone) {
  record_span(Stage::kRead, 1, 2, 3);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop.load()) {
      record_span(Stage::kRead, 1, 1);
      collect_spans();
    }
  });
  for (int i = 0; i < 10; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      name_this_thread("child");
      if (!collect_spans().empty()) _exit(1);
      record_span(Stage::kPack, 7, 8, 9);
      const std::vector<SpanRecord> spans = collect_spans();
      if (spans.size() != 1 || spans[0].batch != 9 || spans[0].thread != "child") _exit(2);
      _exit(spans[0].thread_id == static_cast<uint64_t>(gettid()) ? 0 : 3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

uint64_t in_ns(const Json& number) {
  const std::string& text = number.text();
  const size_t point = text.find('.');
  EXPECT_EQ(text.size() - point, 4u) << text;
  return std::stoull(text.substr(0, point) + text.substr(point + 1));
}

TEST_F(SpansTest, ChromeJsonParsesAndItsSpansNest) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([t] {
      name_this_thread("hr-\"compute\"-" + std::to_string(t));
      for (uint64_t batch = 0; batch < 20; ++batch) {
        const Span outer(Stage::kDeliver, batch, 5);
        const Span middle(Stage::kPack);
        for (int i = 0; i < 3; ++i) const Span inner(Stage::kDecode, batch, 10);
      }
      record_span(Stage::kRead, 1'000, 5'000'000'123, 4, 77);
    });
  for (std::thread& thread : threads) thread.join();
  const std::vector<SpanRecord> spans = collect_spans();
  ASSERT_EQ(spans.size(), 2u * (20 * 5 + 1));
  const Result<Json> parsed = Json::parse(chrome_json(spans, "rank 3"));
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  const Json* events = parsed.value().find("traceEvents");
  ASSERT_NE(events, nullptr);

  std::map<std::string, std::vector<uint64_t>> open;  // of each thread, the ends of open spans
  std::set<std::string> names;
  std::map<std::string, int> begun;  // overlapping spans by their id
  size_t deepest = 0, complete = 0;
  for (const Json& event : events->items()) {
    const std::string& phase = event.find("ph")->text();
    EXPECT_EQ(event.find("pid")->count(), static_cast<uint64_t>(getpid()));
    if (phase == "M") {
      names.insert(event.find("args")->find("name")->text());
    } else if (phase == "X") {
      const uint64_t begin = in_ns(*event.find("ts"));
      const uint64_t end = begin + in_ns(*event.find("dur"));
      std::vector<uint64_t>& ends = open[event.find("tid")->text()];
      while (!ends.empty() && ends.back() <= begin && ends.back() < end) ends.pop_back();
      if (!ends.empty()) {
        EXPECT_LE(end, ends.back()) << "lies in the span around it";
      }
      ends.push_back(end);
      deepest = std::max(deepest, ends.size());
      ++complete;
    } else if (phase == "b") {
      EXPECT_EQ(in_ns(*event.find("ts")), 1'000u);
      EXPECT_EQ(event.find("args")->find("batch")->count(), 4u);
      EXPECT_EQ(event.find("args")->find("bytes")->count(), 77u);
      ++begun[event.find("id")->text()];
    } else {
      EXPECT_EQ(phase, "e");
      EXPECT_EQ(in_ns(*event.find("ts")), 5'000'000'123u);
      --begun[event.find("id")->text()];
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"rank 3", "hr-\"compute\"-0", "hr-\"compute\"-1"}));
  EXPECT_EQ(complete, 200u);
  EXPECT_GE(deepest, 3u);
  EXPECT_EQ(begun.size(), 2u) << "each has an id of its own";
  for (const auto& [id, left] : begun) EXPECT_EQ(left, 0) << "what begins ends";
}

TEST(ChromeJsonTest, WithoutSpansItIsStillJson) {
  EXPECT_TRUE(Json::parse(chrome_json({})).ok());
}

}  // namespace
}  // namespace headrace

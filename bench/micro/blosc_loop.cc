// SPDX-License-Identifier: Apache-2.0
//
// The bare Blosc loop: chunks that lie in memory, opened in a shuffled order into batches that go
// round, on some threads, and nothing else.  What arrays in Blosc chunks are measured against.
//
//   blosc_loop CHUNKS… [threads=1] [seconds=3] [batch=8] [read=0] [by=library]
//
// read=1 reads each chunk from its file before it is opened, as every loader must; by=own opens it
// with our own hands (array/blosc_frame.h) instead of the library's.
#include <blosc.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "arguments.h"
#include "array/blosc.h"
#include "base/buffer.h"
#include "base/rng.h"
#include "storage/open_store.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBatchesAhead = 3;  // as many as the loader fills

int fail(const Status& status) {
  std::fprintf(stderr, "%s\nusage: blosc_loop CHUNKS... [threads=1] [seconds=3] [batch=8]\n",
               status.text().c_str());
  return 2;
}

// A frame says its size at byte 4.
size_t opened_bytes(const Buffer& frame) {
  return frame.size() < 16 ? 0 : load_le<uint32_t>(frame.bytes().subspan(4));
}

bool open_chunk(Bytes chunk, MutableBytes to, bool own) {
  if (own) return unpack_blosc(chunk, to, NextUse::kRest).ok();
  return blosc_decompress_ctx(chunk.data(), to.data(), to.size(), 1) >= 0;
}

int main_of(int argc, char** argv) {
  Options options{
      {"threads", "1"}, {"seconds", "3"}, {"batch", "8"}, {"read", "0"}, {"by", "library"}};
  const std::vector<std::string> paths = read_arguments(argc, argv, options);
  if (paths.empty()) return fail(invalid("no chunk is given"));
  const auto opened = store_of_all(paths);
  if (!opened.ok()) return fail(opened.status());
  const std::shared_ptr<const Store>& store = opened.value();
  const bool reads = options["read"] != "0";
  const bool own = options["by"] == "own";
  std::vector<Buffer> chunks(paths.size());
  size_t most = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (Status s = store->read_at(paths[i], 0, kWholeFile, chunks[i]); !s.ok()) return fail(s);
    most = std::max(most, opened_bytes(chunks[i]));
  }
  const size_t slots = std::stoul(options["batch"]) * kBatchesAhead;
  Buffer batches(most * slots);
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> counted{0};
  std::atomic<bool> bad{false};
  const auto begin = Clock::now() + std::chrono::seconds(1);  // not counted: memory comes in
  const auto stop = begin + std::chrono::duration<double>(std::stod(options["seconds"]));
  std::vector<std::thread> threads;
  for (int t = 0; t < std::stoi(options["threads"]); ++t)
    threads.emplace_back([&, t] {
      Rng rng(Key(static_cast<uint64_t>(t)));
      Buffer fresh;
      for (auto now = Clock::now(); now < stop && !bad; now = Clock::now()) {
        const size_t which = rng.below(chunks.size());
        if (reads && !store->read_at(paths[which], 0, kWholeFile, fresh).ok()) bad = true;
        const Buffer& chunk = reads ? fresh : chunks[which];
        const MutableBytes to = batches.span().subspan(next++ % slots * most, opened_bytes(chunk));
        if (!open_chunk(chunk.bytes(), to, own)) bad = true;
        if (now >= begin) ++counted;
      }
    });
  for (std::thread& t : threads) t.join();
  if (bad) return fail(corrupt("a chunk does not open"));
  std::printf("%zu chunks  %10.1f samples/s\n", chunks.size(),
              static_cast<double>(counted) / std::stod(options["seconds"]));
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::main_of(argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
//
// The bare pread loop: the extents of one field, in a shuffled order, each read by one pread into
// one buffer, one thread, and nothing else.  What reading without decoding is measured against.
//
//   pread_loop SHARDS… field=jpg [seconds=3]
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "arguments.h"
#include "base/buffer.h"
#include "base/rng.h"
#include "open/open.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

struct Extent {
  int fd = -1;
  uint64_t offset = 0;
  uint64_t length = 0;
};

Result<std::vector<Extent>> extents_of(const Source& source, const std::string& name) {
  std::vector<uint32_t> fields;
  for (uint32_t f = 0; f < source.schema().size(); ++f)
    if (source.schema()[f].name == name) fields.push_back(f);
  if (fields.empty()) return invalid("there is no field '" + name + "'");
  std::map<uint32_t, int> files;
  std::vector<Extent> out;
  Request request;
  for (uint64_t s = 0; s < source.size(); ++s) {
    HEADRACE_TRY(source.needs({.sample = s, .fields = fields}, request));
    for (const Unit& unit : request.units) {
      if (unit.encoding != 0 || unit.stored_bytes == kWholeFile)
        return unsupported("values of this format are no plain extents");
      auto [it, fresh] = files.emplace(unit.file, -1);
      if (fresh) it->second = ::open(source.file_path(unit.file).c_str(), O_RDONLY | O_CLOEXEC);
      if (it->second < 0) return from_errno(errno, "open").in_file(source.file_path(unit.file));
      out.push_back({it->second, unit.offset, unit.stored_bytes});
    }
  }
  return out;
}

// Shuffled anew by every pass.
Result<double> measure(std::vector<Extent> extents, double seconds) {
  uint64_t longest = 0;
  for (const Extent& e : extents) longest = std::max(longest, e.length);
  Buffer into(longest);
  Rng rng(Key(1));
  const auto begin = Clock::now() + std::chrono::milliseconds(500);  // not counted: files come in
  const auto stop = begin + std::chrono::duration<double>(seconds);
  uint64_t reads = 0;
  for (bool counts = false; Clock::now() < stop;) {
    for (size_t i = extents.size(); i > 1; --i) std::swap(extents[i - 1], extents[rng.below(i)]);
    for (const Extent& e : extents) {
      if (::pread(e.fd, into.data(), e.length, static_cast<off_t>(e.offset)) !=
          static_cast<ssize_t>(e.length))
        return from_errno(errno, "pread");
      if (counts) ++reads;
    }
    counts = counts || Clock::now() >= begin;
  }
  return static_cast<double>(reads) / std::chrono::duration<double>(Clock::now() - begin).count();
}

int fail(const Status& status) {
  std::fprintf(stderr, "%s\nusage: pread_loop SHARDS... field=jpg [seconds=3]\n",
               status.text().c_str());
  return 2;
}

int main_of(int argc, char** argv) {
  Options options{{"field", "jpg"}, {"seconds", "3"}};
  const std::vector<std::string> urls = read_arguments(argc, argv, options);
  const auto opened = open_source(urls);
  if (!opened.ok()) return fail(opened.status());
  const auto extents = extents_of(*opened.value().source, options["field"]);
  if (!extents.ok()) return fail(extents.status());
  const auto rate = measure(extents.value(), std::stod(options["seconds"]));
  if (!rate.ok()) return fail(rate.status());
  std::printf("%zu extents  %10.1f samples/s\n", extents.value().size(), rate.value());
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::main_of(argc, argv);
}

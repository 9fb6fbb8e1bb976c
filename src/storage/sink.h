// SPDX-License-Identifier: Apache-2.0
//
// Sink: where bytes are written.  A file appears complete or not at all: bytes go
// to a hidden temporary name beside it, close() makes them durable and renames.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

// One thread at a time.  Destroyed without close(): nothing is left behind.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Status append(Bytes data) = 0;
  // Writes over bytes that were appended: a count or an offset that is known only in the end.
  virtual Status rewrite(uint64_t offset, Bytes data) = 0;
  virtual Status close() = 0;  // data is there, and durable, only after close() is OK
};

// Writes `path`, replacing what is there.
Result<std::unique_ptr<Sink>> file_sink(const std::string& path);
// Appends to `out`, which outlives the sink.
std::unique_ptr<Sink> memory_sink(std::vector<std::byte>& out);

// Passes on to `inner`, and refuses to go back (kUnsupported): as an object store takes bytes.
std::unique_ptr<Sink> append_only_sink(std::unique_ptr<Sink> inner);

// True for the temporary names of file_sink, as a killed process leaves them.
bool is_temporary_name(std::string_view base_name);

// All at once: file_sink, append, close.
Status write_file(const std::string& path, Bytes data);

// Behind what is there, durably.
Status append_to_file(const std::string& path, Bytes data);

}  // namespace headrace

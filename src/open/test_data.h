// SPDX-License-Identifier: Apache-2.0
//
// For tests: samples as plain maps, written and read back through a format.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "format/registry.h"
#include "index/view.h"
#include "open/open.h"
#include "storage/memory.h"

namespace headrace {

struct TestSample {
  std::string key;
  std::map<std::string, std::string> fields;  // inline values as text
  bool operator==(const TestSample&) const = default;
};

// Everything of one sample, or the first error.
inline Result<TestSample> read_sample(const Source& source, uint64_t number) {
  std::vector<uint32_t> all(source.schema().size());
  for (uint32_t f = 0; f < all.size(); ++f) all[f] = f;
  Request request;
  HEADRACE_TRY(source.needs({.sample = number, .fields = all, .want_key = true}, request));
  TestSample sample{request.key, {}};
  for (uint32_t f = 0; f < all.size(); ++f) {
    const Field& field = source.schema()[f];
    for (uint32_t p = request.first_piece[f]; p < request.first_piece[f + 1]; ++p) {
      const Piece& piece = request.pieces[p];
      std::string& out = sample.fields[field.name];
      if (!out.empty()) out += '|';
      if (piece.unit == kInlineUnit) {
        out += inline_as_text(field.kind,
                              Bytes(request.inline_bytes).subspan(piece.begin, piece.length));
        continue;
      }
      const Unit& unit = request.units[piece.unit];
      Buffer bytes;
      HEADRACE_TRY(source.store().read_at(source.file_path(unit.file), unit.offset,
                                          unit.stored_bytes, bytes));
      if (unit.encoding == 0) {
        out += as_text(bytes.bytes());
        continue;
      }
      Buffer opened;
      HEADRACE_TRY(source.decode_unit(unit, bytes.bytes(), opened));
      const Bytes whole = opened.bytes();
      if (piece.begin > whole.size()) return corrupt("a piece past its unit");
      out += as_text(whole.subspan(piece.begin)
                         .first(std::min<uint64_t>(piece.length, whole.size() - piece.begin)));
    }
  }
  return sample;
}

inline Result<std::vector<TestSample>> read_samples(const Source& source) {
  std::vector<TestSample> samples;
  for (uint64_t i = 0; i < source.size(); ++i) {
    HEADRACE_ASSIGN(TestSample sample, read_sample(source, i));
    samples.push_back(std::move(sample));
  }
  return samples;
}

// What a value is that a test gives as text.
inline Kind kind_of_test_field(std::string_view name) {
  if (name == "tokens") return Kind::kTokens;
  return name == "label" ? Kind::kFloat : kind_of_extension(name);
}

inline Field test_field(const std::string& name) {
  Field field{.name = name, .kind = kind_of_test_field(name)};
  if (field.kind == Kind::kTokens) {
    field.dtype = DType::kI32;
    field.shape = {kVaries};
  }
  return field;
}

// `append_only`: into sinks that refuse to go back.
inline Result<std::vector<std::byte>> try_to_write_samples(
    const Format& format, const std::vector<TestSample>& samples,
    std::vector<std::byte>* companion = nullptr, bool append_only = false) {
  std::vector<std::byte> out;
  std::vector<std::byte> unused;
  if (companion != nullptr) companion->clear();
  const auto sink = [append_only](std::vector<std::byte>& into) {
    return append_only ? append_only_sink(memory_sink(into)) : memory_sink(into);
  };
  ShardOutput output{.file = sink(out), .samples = samples.size()};
  if (!format.companion.empty())
    output.companion = sink(companion != nullptr ? *companion : unused);
  for (const TestSample& sample : samples)
    for (const auto& [name, bytes] : sample.fields) {
      const Field field = test_field(name);
      if (std::find(output.schema.begin(), output.schema.end(), field) == output.schema.end())
        output.schema.push_back(field);
    }
  HEADRACE_ASSIGN(const std::unique_ptr<Writer> writer, format.create(std::move(output)));
  for (const TestSample& sample : samples) {
    std::vector<RecordValue> values;
    for (const auto& [name, bytes] : sample.fields)
      values.push_back({name, kind_of_test_field(name), Storage::kExtent, as_bytes(bytes)});
    HEADRACE_TRY(writer->append({sample.key, values}));
  }
  HEADRACE_TRY(writer->finish());
  return out;
}

inline std::vector<std::byte> write_samples(const Format& format,
                                            const std::vector<TestSample>& samples,
                                            std::vector<std::byte>* companion = nullptr) {
  const auto written = try_to_write_samples(format, samples, companion);
  EXPECT_TRUE(written.ok()) << written.status().text();
  return written.ok() ? written.value() : std::vector<std::byte>();
}

inline std::string write_tar(const std::vector<TestSample>& samples) {
  return std::string(as_text(write_samples(*find_format("tar").value(), samples)));
}

// n samples with a picture of some bytes and a label; keys from `first` on.
inline std::vector<TestSample> numbered_samples(int n, int first = 0) {
  std::vector<TestSample> samples;
  for (int i = first; i < first + n; ++i)
    samples.push_back({"key" + std::to_string(1000 + i),
                       {{"jpg", "picture " + std::to_string(i)}, {"cls", std::to_string(i % 10)}}});
  return samples;
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include "format/tar/writer.h"

#include <fmt/format.h>

#include <unordered_set>

#include "format/members.h"
#include "format/tar/header.h"

namespace headrace {
namespace {

class TarWriter final : public Writer {
 public:
  explicit TarWriter(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  Status append(const Record& record) override {
    HEADRACE_TRY(names_.take(record));
    // 64 bits of it: among 10^6 keys of a shard two meet by chance once in 10^7 shards.
    if (!keys_.insert(Hasher().add(record.key).finish().high).second)
      return unsupported(fmt::format("two samples of one tar have the key '{}'", record.key));
    for (size_t i = 0; i < record.values.size(); ++i) {
      const RecordValue& value = record.values[i];
      const std::string& name = names_.names()[i];
      if (value.storage == Storage::kExtent)
        HEADRACE_TRY(member(name, value.bytes));
      else
        HEADRACE_TRY(member(name, as_bytes(inline_as_text(value.kind, value.bytes))));
    }
    return {};
  }

  Status finish() override {
    const std::array<std::byte, 2 * kTarBlock> zeros{};
    HEADRACE_TRY(sink_->append(zeros));
    return sink_->close();
  }

 private:
  Status member(const std::string& name, Bytes data) {
    std::array<std::byte, kTarBlock> header;
    const bool fits = make_tar_header(name, data.size(), '0', header);
    std::string records;
    if (!fits) records += pax_record("path", name);
    if (data.size() >= kMaxOctalSize) records += pax_record("size", fmt::format("{}", data.size()));
    if (!records.empty()) {
      std::array<std::byte, kTarBlock> pax;
      (void)make_tar_header("PaxHeader", records.size(), 'x', pax);
      HEADRACE_TRY(padded(pax, as_bytes(records)));
      // To readers without PAX the end of a long name tells most.
      if (!fits)
        (void)make_tar_header(std::string_view(name).substr(name.size() - 100), data.size(), '0',
                              header);
    }
    return padded(header, data);
  }

  Status padded(Bytes header, Bytes data) {
    static constexpr std::array<std::byte, kTarBlock> kZeros{};
    HEADRACE_TRY(sink_->append(header));
    HEADRACE_TRY(sink_->append(data));
    return sink_->append(Bytes(kZeros).first(tar_padded(data.size()) - data.size()));
  }

  std::unique_ptr<Sink> sink_;
  std::unordered_set<uint64_t> keys_;
  MemberNames names_{"tar"};
};

}  // namespace

std::unique_ptr<Writer> make_tar_writer(std::unique_ptr<Sink> sink) {
  return std::make_unique<TarWriter>(std::move(sink));
}

}  // namespace headrace

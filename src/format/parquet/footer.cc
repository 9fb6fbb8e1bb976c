// SPDX-License-Identifier: Apache-2.0
#include "format/parquet/footer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace headrace {
namespace {

// Types of Thrift's compact protocol.
constexpr int kStop = 0;
constexpr int kTrue = 1;
constexpr int kFalse = 2;
constexpr int kByte = 3;
constexpr int kI64 = 6;  // kI16 and kI32 are 4 and 5: all of them are varints
constexpr int kDouble = 7;
constexpr int kBinary = 8;
constexpr int kList = 9;
constexpr int kSet = 10;
constexpr int kMap = 11;
constexpr int kStruct = 12;
constexpr int kUuid = 13;

constexpr int kMaxDepth = 32;

// One thread at a time.  Once something is wrong, status() says it and all else reads as nothing.
class Thrift {
 public:
  Thrift(Bytes bytes, uint64_t offset) : bytes_(bytes), offset_(offset) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

  void damaged(std::string what) {
    if (status_.ok()) status_ = corrupt("Parquet footer: " + std::move(what)).at(offset_ + at_);
  }

  // Calls field(number, type) for each field of a struct; who does not read it calls skip().
  void each_field(const std::function<void(int, int)>& field) {
    if (++depth_ > kMaxDepth) damaged("structures within each other");
    int number = 0;
    while (ok()) {
      const int head = byte();
      const int type = head & 0x0f;
      if (!ok() || type == kStop) break;
      number = head >> 4 != 0 ? number + (head >> 4) : static_cast<int>(zigzag());
      field(number, type);
    }
    --depth_;
  }

  // Calls item() for each element of a list, whose type must be `wanted`.
  void each_item(int type, int wanted, const std::function<void()>& item) {
    int of = 0;
    const uint64_t n = list_head(type, of);
    if (ok() && n > 0 && of != wanted) damaged("a list of another type");
    for (uint64_t i = 0; i < n && ok(); ++i) item();
  }

  int64_t integer(int type) {
    if (type < kByte || type > kI64) {
      damaged("a number is of another type");
      return 0;
    }
    return type == kByte ? static_cast<int8_t>(byte()) : zigzag();
  }

  std::string_view text() {
    const uint64_t n = varint();
    if (n > left()) {
      damaged(fmt::format("a text of {} bytes", n));
      return {};
    }
    const std::string_view out = as_text(bytes_.subspan(at_, n));
    at_ += n;
    return out;
  }

  void skip(int type) {
    if (++depth_ > kMaxDepth) damaged("structures within each other");
    if (!ok()) return;
    if (type == kBinary) {
      text();
    } else if (type == kStruct) {
      each_field([this](int, int inner) { skip(inner); });
    } else if (type == kList || type == kSet) {
      int of = 0;
      const uint64_t n = list_head(type, of);
      for (uint64_t i = 0; i < n && ok(); ++i) skip_item(of);
    } else if (type == kMap) {
      skip_map();
    } else {
      skip_plain(type);
    }
    --depth_;
  }

 private:
  uint64_t left() const { return bytes_.size() - at_; }

  void skip_plain(int type) {
    if (type == kTrue || type == kFalse) return;
    if (type >= 4 && type <= kI64)
      varint();
    else if (type == kByte)
      take(1);
    else if (type == kDouble)
      take(8);
    else if (type == kUuid)
      take(16);
    else
      damaged(fmt::format("type {}", type));
  }
  // In a list a truth has a byte of its own.
  void skip_item(int type) { type == kTrue || type == kFalse ? take(1) : skip(type); }
  void skip_map() {
    const uint64_t n = varint();
    if (n == 0) return;
    const int types = byte();
    if (n > left()) damaged(fmt::format("a map of {}", n));
    for (uint64_t i = 0; i < n && ok(); ++i) {
      skip_item(types >> 4);
      skip_item(types & 0x0f);
    }
  }

  // Every element takes a byte at least.
  uint64_t list_head(int type, int& of) {
    if (type != kList && type != kSet) damaged("a list is of another type");
    const int head = byte();
    of = head & 0x0f;
    const uint64_t n = head >> 4 == 15 ? varint() : static_cast<uint64_t>(head >> 4);
    if (n > left()) damaged(fmt::format("a list of {}", n));
    return ok() ? n : 0;
  }

  void take(uint64_t n) {
    if (n > left())
      damaged("it ends too early");
    else
      at_ += n;
  }
  int byte() {
    if (!ok() || left() == 0) {
      damaged("it ends too early");
      return 0;
    }
    return static_cast<int>(bytes_[at_++]);
  }
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64 && ok(); shift += 7) {
      const auto b = static_cast<uint64_t>(byte());
      out |= (b & 0x7f) << shift;
      if ((b & 0x80) == 0) return out;
    }
    damaged("a number that does not end");
    return 0;
  }
  int64_t zigzag() {
    const uint64_t n = varint();
    return static_cast<int64_t>((n >> 1) ^ (~(n & 1) + 1));
  }

  const Bytes bytes_;
  const uint64_t offset_;
  uint64_t at_ = 0;
  int depth_ = 0;
  Status status_;
};

// One thread at a time.
class FooterReader {
 public:
  FooterReader(Bytes footer, uint64_t offset, uint64_t file_bytes)
      : in_(footer, offset), file_bytes_(file_bytes) {}

  Result<ParquetFooter> run() {
    int64_t rows = 0;
    in_.each_field([&](int number, int type) {
      if (number == 3)
        rows = count(type, "rows");
      else if (number == 4)
        in_.each_item(type, kStruct, [this] { row_group(); });
      else if (number == 8)
        out_.is_encrypted = true, in_.skip(type);
      else
        in_.skip(type);
    });
    HEADRACE_TRY(in_.status());
    // Of 0 rows some writers say nothing of row groups, or write empty ones.
    if (out_.rows != static_cast<uint64_t>(rows))
      return corrupt(
          fmt::format("Parquet footer: {} rows, and {} in its row groups", rows, out_.rows));
    return std::move(out_);
  }

 private:
  int64_t count(int type, std::string_view what) {
    const int64_t n = in_.integer(type);
    if (n < 0) in_.damaged(fmt::format("{} {}", n, what));
    return std::max<int64_t>(0, n);
  }

  void row_group() {
    column_ = 0;
    in_.each_field([this](int number, int type) {
      if (number == 1) {
        in_.each_item(type, kStruct, [this] { column_chunk(); });
      } else if (number == 3) {
        const auto rows = static_cast<uint64_t>(count(type, "rows in a row group"));
        if (rows > INT64_MAX - out_.rows) return in_.damaged("too many rows");
        out_.rows += rows;
      } else {
        in_.skip(type);
      }
    });
  }

  void column_chunk() {
    std::string path;
    bool encrypted = false;
    in_.each_field([&](int number, int type) {
      if (number == 3 && type == kStruct) return column_metadata(path);
      encrypted = encrypted || number == 8 || number == 9;
      in_.skip(type);
    });
    if (encrypted) {
      if (path.empty()) path = fmt::format("column {}", column_);
      if (std::find(out_.encrypted.begin(), out_.encrypted.end(), path) == out_.encrypted.end())
        out_.encrypted.push_back(path);
    }
    ++column_;
  }

  void column_metadata(std::string& path) {
    in_.each_field([&](int number, int type) {
      if (number == 3) {
        in_.each_item(type, kBinary, [&] {
          if (!path.empty()) path += '.';
          path += in_.text();
        });
      } else if (number == 5) {
        count(type, "values in a column");
      } else if (number == 6 || number == 7) {
        count(type, "bytes of a column");
      } else if (number == 9) {
        const int64_t at = count(type, "as the offset of a column");
        if (static_cast<uint64_t>(at) > file_bytes_)
          in_.damaged(fmt::format("a column at offset {} of a file of {} bytes", at, file_bytes_));
      } else {
        in_.skip(type);
      }
    });
  }

  Thrift in_;
  const uint64_t file_bytes_;
  ParquetFooter out_;
  uint64_t column_ = 0;
};

}  // namespace

Result<ParquetFooter> parse_parquet_footer(Bytes footer, uint64_t offset, uint64_t file_bytes) {
  return FooterReader(footer, offset, file_bytes).run();
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "convert.h"
#include "errors.h"
#include "format/registry.h"
#include "handles.h"
#include "open/token_files.h"
#include "progress.h"
#include "storage/sink.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

SourceHandle open_tokens(const std::vector<std::string>& urls, uint64_t seq_len,
                         const std::string& stored, const std::string& index,
                         bool permute_documents, nb::object function) {
  Progress progress(std::move(function));
  OpenOptions options;
  options.index = index;
  options.progress = [&progress](const IndexProgress& p) {
    progress.tell(p.shards_done, p.shards, p.samples);
  };
  options.cancel = progress.cancel();
  TokenWindowOptions wanted{.seq_len = seq_len, .permute_documents = permute_documents};
  if (!stored.empty()) wanted.stored = parse_dtype(stored);
  Result<OpenedTokens> opened = internal("not opened");
  {
    nb::gil_scoped_release release;
    opened = open_token_windows(urls, wanted, options);
  }
  progress.finish();
  OpenedTokens o = unwrap(std::move(opened));
  SourceHandle out;
  out.source = o.windows.source;
  out.format = o.format;
  out.notices = o.notices;
  out.shards_built = o.shards_built;
  for (const TokenFile& file : o.files)
    out.shards.push_back(
        {file.name, file.tokens, file.tokens == 0 ? 0 : (file.tokens - 1) / seq_len});
  return out;
}

// Megatron's pair of files, a document at a time.  Dropped before finish(): nothing is left behind.
class TokenWriter {
 public:
  TokenWriter(const std::string& index, const std::string& bin, const std::string& dtype) {
    const Format* format = unwrap(find_format("megatron"));
    writer_ = unwrap(format->create(
        {.file = unwrap(file_sink(index)),
         .companion = unwrap(file_sink(bin)),
         .schema = {{.name = "tokens", .kind = Kind::kTokens, .dtype = parse_dtype(dtype)}}}));
  }
  // Documents one after the other, from byte `begin` on, each of so many bytes.
  void add(nb::bytes tokens, size_t begin, const std::vector<size_t>& sizes) {
    Bytes rest = as_bytes({tokens.c_str(), tokens.size()});
    rest = rest.subspan(std::min(begin, rest.size()));
    Status status;
    {
      nb::gil_scoped_release release;
      for (const size_t size : sizes) {
        if (size > rest.size()) status = internal("documents beyond the end of their tokens");
        if (!status.ok()) break;
        const RecordValue value{.field = "tokens", .bytes = rest.first(size)};
        status = writer_->append({.key = "", .values = {&value, 1}});
        rest = rest.subspan(size);
      }
    }
    check(status);
  }
  void finish() {
    nb::gil_scoped_release release;
    const Status status = writer_->finish();
    nb::gil_scoped_acquire acquire;
    check(status);
  }

 private:
  std::unique_ptr<Writer> writer_;
};

}  // namespace

void bind_tokens(nb::module_& m) {
  nb::class_<TokenWriter>(m, "TokenWriter")
      .def(nb::init<const std::string&, const std::string&, const std::string&>(), nb::arg("index"),
           nb::arg("bin"), nb::arg("dtype"))
      .def("add", &TokenWriter::add, nb::arg("tokens"), nb::arg("begin"), nb::arg("sizes"))
      .def("finish", &TokenWriter::finish);
  m.def("open_tokens", &open_tokens, nb::arg("urls"), nb::arg("seq_len"), nb::arg("stored") = "",
        nb::arg("index") = "", nb::arg("permute_documents") = false,
        nb::arg("progress") = nb::none());
}

}  // namespace headrace::py

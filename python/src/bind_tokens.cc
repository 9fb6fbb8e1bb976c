// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "convert.h"
#include "errors.h"
#include "handles.h"
#include "open/token_files.h"
#include "progress.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

SourceHandle open_tokens(const std::vector<std::string>& urls, uint64_t seq_len,
                         const std::string& stored, const std::string& index, nb::object function) {
  Progress progress(std::move(function));
  OpenOptions options;
  options.index = index;
  options.progress = [&progress](const IndexProgress& p) {
    progress.tell(p.shards_done, p.shards, p.samples);
  };
  options.cancel = progress.cancel();
  std::optional<DType> type;
  if (!stored.empty()) type = parse_dtype(stored);
  Result<OpenedTokens> opened = internal("not opened");
  {
    nb::gil_scoped_release release;
    opened = open_token_windows(urls, seq_len, type, options);
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

}  // namespace

void bind_tokens(nb::module_& m) {
  m.def("open_tokens", &open_tokens, nb::arg("urls"), nb::arg("seq_len"), nb::arg("stored") = "",
        nb::arg("index") = "", nb::arg("progress") = nb::none());
}

}  // namespace headrace::py

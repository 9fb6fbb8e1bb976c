// SPDX-License-Identifier: Apache-2.0
#include "headrace/tokens.h"

#include "api/inside.h"
#include "open/token_files.h"

namespace hr {

Dataset open_tokens(const std::vector<std::string>& urls, const TokenRows& rows,
                    const std::string& index) {
  headrace::TokenWindowOptions wanted{.seq_len = rows.seq_len,
                                      .permute_documents = rows.permute_documents};
  if (!rows.stored.empty()) {
    wanted.stored = headrace::dtype_named(rows.stored);
    if (!wanted.stored)
      raise(headrace::invalid("stored: there is no type '" + rows.stored +
                              "'; \"u16\", \"i32\" and so on are wanted"));
  }
  headrace::OpenedTokens opened =
      unwrap(headrace::open_token_windows(urls, wanted, {.index = index}));
  return dataset_of(std::move(opened.windows.source));
}

}  // namespace hr

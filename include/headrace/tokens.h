// SPDX-License-Identifier: Apache-2.0
//
// Files of tokens as rows of one length, as hr.tokens(seq_len=2048) has them in Python.
//
//   const hr::Dataset rows = hr::open_tokens({"corpus/*.bin"}, {.seq_len = 2048});
//   hr::Loader loader(rows, {{"tokens", hr::tokens("tokens").cast("i64")}}, {.batch_size = 16});
//
// A sample has `tokens`, seq_len + 1 of them; where the files say where documents begin
// (Megatron's), also `positions`, `loss_mask` and `cu_seqlens`.  docs/tokens.md says what they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/dataset.h"

namespace hr {

struct TokenRows {
  uint64_t seq_len = 0;
  std::string stored = {};  // "u16", "i32", …: the type of files that do not say it (nanoGPT's)
  bool permute_documents = false;  // anew each epoch, within pools
};

// `index`: a folder that `headrace index` made.
HEADRACE_API Dataset open_tokens(const std::vector<std::string>& urls, const TokenRows& rows,
                                 const std::string& index = {});

}  // namespace hr

// SPDX-License-Identifier: Apache-2.0
//
// From what a user names to windows over tokens: Megatron's pairs, and files of nothing but tokens.
//
//   x.idx beside x.bin             Megatron's: the index says the type and where documents begin
//   x.bin with llm.c's header      256 x i32: magic, version, number of tokens; u16 or u32
//   x.npy                          an array of whole numbers with one axis
//   x.bin, or any other name       tokens alone (nanoGPT): the user says of which type
#pragma once

#include <string>
#include <vector>

#include "index/token_windows.h"
#include "open/open.h"

namespace headrace {

struct OpenedTokens {
  TokenWindows windows;
  std::string format;  // "megatron" or "tokens"
  std::vector<TokenFile> files;
  std::vector<std::string> notices;
  uint64_t shards_built = 0;
};

struct TokenWindowOptions {
  uint64_t seq_len = 0;
  std::optional<DType> stored = {};  // the type of files that do not say it
  bool permute_documents = false;
};
Result<OpenedTokens> open_token_windows(const std::vector<std::string>& urls,
                                        const TokenWindowOptions& wanted,
                                        const OpenOptions& options);

}  // namespace headrace

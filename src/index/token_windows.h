// SPDX-License-Identifier: Apache-2.0
//
// Token windows: files of tokens as rows of one length.
//
//   file     | 0 1 2 3 | 4 5 6 7 | 8 9 …      seq_len 4: window w has the tokens [4w, 4w + 5)
//   window 0   0 1 2 3   4                    inputs 0 to 3, targets 1 to 4
//   window 1             4 5 6 7   8
//
// Windows share one token, so every token but a file's first is a target once, and every token but
// those at its end an input once.  A window never crosses a file; what is left at its end is not
// used, and counted.  Where it is known where documents begin, a sample has besides its tokens
//
//   positions    i32 [seq_len]   of each input in its document, or since the window began
//   loss_mask    u8 [seq_len]    0 where the target is the first token of a document, else 1
//   cu_seqlens   i32 [any]       where the documents of the window begin, 0 first, seq_len last
//
// Where documents are permuted (document_pools.h), windows are cut from the documents in the order
// of the epoch: window w is another one each epoch, and so are the tokens at the end of a file that
// fill none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "index/document_pools.h"
#include "index/source.h"

namespace headrace {

struct TokenFile {
  std::string name;    // relative: goes into the fingerprint
  std::string path;    // as the store opens it
  uint64_t begin = 0;  // the byte of its first token
  uint64_t tokens = 0;
};

struct TokenFiles {
  DType dtype = DType::kU16;
  std::vector<TokenFile> files;
  std::shared_ptr<const Store> store;
  // Called when a window of the file first asks, from any thread.  Unset: not known.
  std::function<Result<std::shared_ptr<const DocumentBegins>>(size_t file)> documents = {};
};

struct TokenWindows {
  std::shared_ptr<const Source> source;
  uint64_t unused_tokens = 0;  // at the ends of files
  uint64_t short_files = 0;    // that have not one window
};

// kInvalidArgument where no file has a window, and where documents are to be permuted and nothing
// says where they begin.
Result<TokenWindows> make_token_windows(TokenFiles files, uint64_t seq_len,
                                        bool permute_documents = false);

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// DocumentPools: the documents of a file in another order each epoch, permuted within pools.
//
//   file     | pool 0: documents 0 1 2 | pool 1: documents 3 4 5 6 | …
//   epoch 7  | 2 0 1                   | 5 3 6 4                   | …
//
// A pool is a run of documents: it ends with the document that brings it to kPoolTokens, or after
// kPoolDocuments.  So a pool has the same place among the tokens in every order, and a place is
// found in it without looking at the other pools.  The order of a pool is a pure function of (key
// of the epoch, file, pool); none is kept for longer than it is used.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/rng.h"
#include "storage/lru.h"

namespace headrace {

// Where documents begin, in tokens from the first of a file; ascending.
using DocumentBegins = std::vector<uint64_t>;

inline constexpr uint64_t kPoolTokens = uint64_t{1} << 20;
inline constexpr uint64_t kPoolDocuments = 1 << 16;

// A part of a document, as it lies in the file.
struct DocumentPart {
  uint64_t begin = 0;  // token of the file
  uint64_t tokens = 0;
  bool is_start = false;  // the document begins here
};

// The pools of one file.  Immutable.
class DocumentPools {
 public:
  // `tokens` of the file; begins.front() is 0.
  DocumentPools(std::shared_ptr<const DocumentBegins> begins, uint64_t tokens);

  size_t size() const { return first_document_.size() - 1; }
  size_t pool_at(uint64_t token) const;
  uint64_t begin_of(size_t pool) const;
  uint64_t tokens_of(size_t pool) const { return begin_of(pool + 1) - begin_of(pool); }

  // The documents of a pool in an order: which, and where each begins in it.
  struct Order {
    std::vector<uint32_t>
        documents;                 // from the first of the pool on; those without a token left out
    std::vector<uint64_t> begins;  // in tokens from the begin of the pool; one more: its end
  };
  std::shared_ptr<const Order> order(Key key, size_t pool) const;
  // Where a document lies in the file.
  uint64_t place_of(size_t pool, uint32_t document) const {
    return (*begins_)[first_document_[pool] + document];
  }

 private:
  uint64_t begin_of_document(uint64_t d) const {
    return d < begins_->size() ? (*begins_)[d] : tokens_;
  }

  const std::shared_ptr<const DocumentBegins> begins_;
  const uint64_t tokens_;
  std::vector<uint64_t> first_document_;  // of each pool, and the end
};

// The parts of documents that the tokens [begin, begin + count) of a file are made of.  Orders that
// were used last are kept.  Thread-safe.
class PermutedDocuments {
 public:
  void find(const DocumentPools& pools, uint64_t file, Key key, uint64_t begin, uint64_t count,
            std::vector<DocumentPart>& out) HEADRACE_EXCLUDES(mu_);

 private:
  std::shared_ptr<const DocumentPools::Order> order(const DocumentPools& pools, Key key,
                                                    size_t pool) HEADRACE_EXCLUDES(mu_);
  Mutex mu_;
  Lru<uint64_t, std::shared_ptr<const DocumentPools::Order>> kept_ HEADRACE_GUARDED_BY(mu_){256};
};

}  // namespace headrace

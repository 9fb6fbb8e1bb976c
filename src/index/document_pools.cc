// SPDX-License-Identifier: Apache-2.0
#include "index/document_pools.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace headrace {

DocumentPools::DocumentPools(std::shared_ptr<const DocumentBegins> begins, uint64_t tokens)
    : begins_(std::move(begins)), tokens_(tokens) {
  first_document_.push_back(0);
  for (uint64_t d = 0; d < begins_->size(); ++d) {
    const uint64_t first = first_document_.back();
    const bool is_full = begin_of_document(d + 1) - begin_of_document(first) >= kPoolTokens ||
                         d + 1 - first >= kPoolDocuments;
    if (is_full || d + 1 == begins_->size()) first_document_.push_back(d + 1);
  }
}

uint64_t DocumentPools::begin_of(size_t pool) const {
  return begin_of_document(first_document_[pool]);
}

size_t DocumentPools::pool_at(uint64_t token) const {
  const auto after =
      std::upper_bound(first_document_.begin(), first_document_.end() - 1, token,
                       [this](uint64_t t, uint64_t d) { return t < begin_of_document(d); });
  return static_cast<size_t>(after - first_document_.begin()) - 1;
}

std::shared_ptr<const DocumentPools::Order> DocumentPools::order(Key key, size_t pool) const {
  const uint64_t first = first_document_[pool];
  std::vector<uint32_t> all(first_document_[pool + 1] - first);
  std::iota(all.begin(), all.end(), 0U);
  Rng rng(key);
  for (size_t i = 0; i + 1 < all.size(); ++i) std::swap(all[i], all[i + rng.below(all.size() - i)]);
  auto out = std::make_shared<Order>();
  uint64_t at = 0;
  for (const uint32_t document : all) {
    const uint64_t d = first + document;
    const uint64_t tokens = begin_of_document(d + 1) - begin_of_document(d);
    if (tokens == 0) continue;
    out->documents.push_back(document);
    out->begins.push_back(at);
    at += tokens;
  }
  out->begins.push_back(at);
  return out;
}

std::shared_ptr<const DocumentPools::Order> PermutedDocuments::order(const DocumentPools& pools,
                                                                     Key key, size_t pool) {
  {
    MutexLock lock(mu_);
    if (const auto* known = kept_.find(key.value())) return *known;
  }
  auto made = pools.order(key, pool);
  MutexLock lock(mu_);
  kept_.insert(key.value(), made);
  return made;
}

void PermutedDocuments::find(const DocumentPools& pools, uint64_t file, Key key, uint64_t begin,
                             uint64_t count, std::vector<DocumentPart>& out) {
  out.clear();
  for (size_t pool = pools.pool_at(begin); count > 0 && pool < pools.size(); ++pool) {
    const auto order = this->order(pools, key.with("documents").with(file).with(pool), pool);
    uint64_t at = begin - pools.begin_of(pool);  // in the pool
    auto next = std::upper_bound(order->begins.begin(), order->begins.end(), at);
    for (; next != order->begins.end() && count > 0; ++next) {
      const auto i = static_cast<size_t>(next - order->begins.begin()) - 1;
      const uint64_t into = at - order->begins[i];
      const uint64_t taken = std::min(count, order->begins[i + 1] - at);
      out.push_back({pools.place_of(pool, order->documents[i]) + into, taken, into == 0});
      at += taken;
      begin += taken;
      count -= taken;
    }
  }
}

}  // namespace headrace

// SPDX-License-Identifier: Apache-2.0
//
// Lru: a map that forgets what was asked for longest ago.  No lock of its own.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace headrace {

// Lets a map with std::string keys be asked with a std::string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};

// One thread at a time.  V is cheap to copy, a shared_ptr say: what was handed out
// lives on when the entry is forgotten.
template <typename K, typename V, typename Hash = std::hash<K>>
class Lru {
 public:
  explicit Lru(size_t capacity) : capacity_(capacity) {}

  // Null when it is not there.
  template <typename Q>
  const V* find(const Q& key) {
    const auto it = entries_.find(key);
    if (it == entries_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, it->second.place);
    return &it->second.value;
  }

  // Keeps what is there already.  Returns what was forgotten for it, or an empty V:
  // the caller destroys it where it holds no lock.
  V insert(K key, V value) {
    const auto [it, added] = entries_.try_emplace(std::move(key), Entry{std::move(value), {}});
    if (!added) return {};
    recent_.push_front(&it->first);
    it->second.place = recent_.begin();
    if (entries_.size() <= capacity_) return {};
    const auto oldest = entries_.find(*recent_.back());
    V forgotten = std::move(oldest->second.value);
    recent_.pop_back();
    entries_.erase(oldest);
    return forgotten;
  }

  // What was there under the key, or an empty V: the caller destroys it where it holds no lock.
  template <typename Q>
  V remove(const Q& key) {
    const auto it = entries_.find(key);
    if (it == entries_.end()) return {};
    V removed = std::move(it->second.value);
    recent_.erase(it->second.place);
    entries_.erase(it);
    return removed;
  }

  size_t size() const { return entries_.size(); }

 private:
  using Recent = std::list<const K*>;  // keys of the map's nodes, which do not move
  struct Entry {
    V value;
    typename Recent::iterator place;
  };

  const size_t capacity_;
  Recent recent_;
  std::unordered_map<K, Entry, Hash, std::equal_to<>> entries_;
};

}  // namespace headrace

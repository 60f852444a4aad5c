// SPDX-License-Identifier: MIT
// LruMap: a map from text to values with a limit on its size. When it is full, a new entry replaces
// the one that was looked up least recently. Not thread-safe.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace dlprim {

template <typename Value>
class LruMap {
  public:
    explicit LruMap(std::size_t most) : most_(most) {}

    /// Returns the value of this key and marks it as used, or returns nullptr. The pointer is valid
    /// until the next insert().
    Value* find(std::string_view key) {
        const auto found = places_.find(key);
        if (found == places_.end()) return nullptr;
        items_.splice(items_.begin(), items_, found->second);
        return &found->second->second;
    }

    /// Adds or replaces a value.
    Value& insert(std::string_view key, Value value) {
        if (Value* const found = find(key)) return *found = std::move(value);
        if (items_.size() >= most_) drop(std::prev(items_.end()));
        items_.emplace_front(key, std::move(value));
        try {
            // Keys are the list's own strings, which stay where they are.
            places_.emplace(items_.front().first, items_.begin());
        } catch (...) {
            items_.pop_front();
            throw;
        }
        return items_.front().second;
    }

    void erase(std::string_view key) {
        if (const auto found = places_.find(key); found != places_.end()) drop(found->second);
    }

    /// Erases the entries whose keys `is_unwanted` says yes to.
    template <typename Predicate>
    void erase_if(Predicate&& is_unwanted) {
        for (auto item = items_.begin(); item != items_.end();)
            if (const auto each = item++; is_unwanted(std::string_view(each->first))) drop(each);
    }

    std::size_t size() const noexcept { return items_.size(); }

  private:
    using Items = std::list<std::pair<std::string, Value>>;
    void drop(typename Items::iterator item) {
        places_.erase(item->first);
        items_.erase(item);
    }

    std::size_t most_;
    Items items_;  ///< the most recently used first
    std::unordered_map<std::string_view, typename Items::iterator> places_;
};

}  // namespace dlprim

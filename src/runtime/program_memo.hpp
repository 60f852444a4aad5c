// SPDX-License-Identifier: MIT
// ProgramMemo: what is made of a program's text, made once for each text.
//
// Each plan builds its launches anew, and each launch asks for its program by a text of some
// kilobytes that a plan of other sizes has asked for before. To parse or hash such a text takes
// longer than all else that the launch needs.
#pragma once

#include "base/hash.hpp"
#include "base/text.hpp"
#include "runtime/program.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace dlprim {

/// 32 hexadecimal digits by which caches know the text and its options. ProgramSource::name does
/// not count.
inline std::string hash_of(const ProgramSource& source) {
    return hash_hex(cat(source.options, '\n', source.source));
}

/// Values by text and options; ProgramSource::name does not count. Any thread may use it. Values
/// stay as long as the memo.
template <typename Value>
class ProgramMemo {
  public:
    /// The text's value, which `make` returns if there is none. Two threads may make it at the same
    /// time; both get the one that is kept. What `make` throws is thrown here, and nothing is kept.
    template <typename Make>
    const Value& of(const ProgramSource& source, Make make) {
        {
            const std::lock_guard lock(mutex_);
            const auto known = entries_.find(Key{source.options, source.source});
            if (known != entries_.end()) return known->second->value;
        }
        auto entry = std::make_unique<Entry>(Entry{source.options, source.source, make()});
        const Key key{entry->options, entry->source};
        const std::lock_guard lock(mutex_);
        return entries_.try_emplace(key, std::move(entry)).first->second->value;
    }

    /// Calls `act` for each value. Nothing is added meanwhile.
    template <typename Act>
    void for_each(Act act) {
        const std::lock_guard lock(mutex_);
        for (const auto& entry : entries_) act(entry.second->value);
    }

    void clear() {
        const std::lock_guard lock(mutex_);
        entries_.clear();
    }

  private:
    /// Refers to strings of an Entry, or of the text that is looked up.
    struct Key {
        std::string_view options, source;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept {
            const std::hash<std::string_view> hash;
            return hash(key.source) * 31 + hash(key.options);
        }
    };
    struct Entry {
        std::string options, source;
        Value value;
    };

    std::mutex mutex_;
    std::unordered_map<Key, std::unique_ptr<Entry>, Hash> entries_;
};

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// KnownOptions: options of eager calls by the bytes that they were given as, so that what is given
// again is a look-up.
#pragma once

#include "exec/eager.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace dlprim {

/// For any threads at once.
class KnownOptions {
  public:
    /// The options of `key`, which `make` makes where they are not known. What it throws arrives at
    /// the caller.
    template <typename Make>
    std::shared_ptr<const EagerOptions> find(std::string_view key, Make&& make) {
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = known_.find(key); found != known_.end()) return found->second;
        }
        std::shared_ptr<const EagerOptions> options = eager_options(make());
        const std::lock_guard lock(mutex_);
        if (known_.size() >= most) known_.clear();
        known_.insert_or_assign(std::string(key), options);
        return options;
    }

  private:
    struct Hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    static constexpr std::size_t most = 4096;
    std::mutex mutex_;
    std::unordered_map<std::string, std::shared_ptr<const EagerOptions>, Hash, std::equal_to<>>
        known_;
};

}  // namespace dlprim

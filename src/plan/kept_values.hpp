// SPDX-License-Identifier: MIT
// KeptValues: what the setups of plans have made (packed and folded weights), so that another plan
// of the same parameters, for other shapes, reads it in place of making it again.
#pragma once

#include "runtime/buffer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace dlprim {

/// Values by their content, a text that says how they are computed from which parameters
/// (Stored::content). Memory belongs to the executors that use it: a value is found as long as one
/// of them exists. Nobody writes to it but a setup, which writes the same bits again.
class KeptValues {
  public:
    struct Found {
        std::shared_ptr<Buffer> memory;
        std::uint64_t offset = 0;
    };

    std::optional<Found> find(const std::string& content) const {
        const auto known = known_.find(content);
        if (known == known_.end()) return std::nullopt;
        std::shared_ptr<Buffer> memory = known->second.memory.lock();
        if (!memory) return std::nullopt;
        return Found{std::move(memory), known->second.offset};
    }

    void add(const std::string& content, const std::shared_ptr<Buffer>& memory,
             std::uint64_t offset) {
        if (known_.size() >= 2 * alive_) forget_unused();
        known_[content] = {memory, offset};
    }

    /// To be called when parameters change: what was made of them is not found any more.
    void clear() { known_.clear(); }

  private:
    void forget_unused() {
        std::erase_if(known_, [](const auto& entry) { return entry.second.memory.expired(); });
        alive_ = std::max<std::size_t>(64, known_.size());
    }

    struct Known {
        std::weak_ptr<Buffer> memory;
        std::uint64_t offset = 0;
    };
    std::map<std::string, Known> known_;
    std::size_t alive_ = 64;  ///< when unused values were last forgotten, at least
};

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// OutgoingText: a text that is made token by token, and how much of it the caller has. What may
// become a stop text, or is no whole character yet, is kept back.
#pragma once

#include "language/characters.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::language {

class OutgoingText {
  public:
    explicit OutgoingText(std::vector<std::string> stop) : stop_(std::move(stop)) {}

    /// Appends bytes. Returns whether a stop text ended the text, which is cut off before it.
    bool append(std::string_view bytes) {
        std::size_t longest = 0;
        for (const std::string& stop : stop_) longest = std::max(longest, stop.size());
        const std::size_t from = text_.size() - std::min(text_.size(), longest);
        text_ += bytes;
        std::size_t end = std::string::npos;
        for (const std::string& stop : stop_) end = std::min(end, text_.find(stop, from));
        if (end == std::string::npos) return false;
        text_.resize(std::max(end, given_));
        return true;
    }
    /// What is sure and was not given yet; all of it if it is the `last`.
    std::string take(bool last) {
        std::size_t end = text_.size();
        if (!last) end -= std::max(unfinished(text_), beginning_of_stop());
        const std::size_t from = std::exchange(given_, std::max(end, given_));
        return text_.substr(from, given_ - from);
    }
    const std::string& text() const { return text_; }

  private:
    /// How many bytes at the end may be the first ones of a stop text.
    std::size_t beginning_of_stop() const {
        std::size_t most = 0;
        for (const std::string& stop : stop_)
            for (std::size_t count = std::min(stop.size() - 1, text_.size()); count > most; --count)
                if (text_.ends_with(std::string_view(stop).substr(0, count))) most = count;
        return most;
    }

    std::vector<std::string> stop_;
    std::string text_;
    std::size_t given_ = 0;
};

}  // namespace dlprim::language

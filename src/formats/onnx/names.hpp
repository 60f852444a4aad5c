// SPDX-License-Identifier: MIT
// Names: names that are all different. One that is taken gets a number behind it.
#pragma once

#include "base/text.hpp"

#include <map>
#include <set>
#include <string>

namespace dlprim::onnx {

class Names {
  public:
    bool has(const std::string& name) const { return taken_.count(name) > 0; }
    void insert(const std::string& name) { taken_.insert(name); }
    /// The wanted name, or it with a number, that is not taken. It is not taken by this call.
    std::string unused(const std::string& wanted) {
        if (!has(wanted)) return wanted;
        int& next = next_.try_emplace(wanted, 2).first->second;
        while (has(cat(wanted, "#", next))) ++next;
        return cat(wanted, "#", next);
    }
    /// unused(), which is then taken.
    std::string take(const std::string& wanted) { return *taken_.insert(unused(wanted)).first; }

  private:
    std::set<std::string> taken_;
    /// Where unused() goes on for a name: thousands of nodes may have the same one.
    std::map<std::string, int> next_;
};

}  // namespace dlprim::onnx

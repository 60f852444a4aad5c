// SPDX-License-Identifier: MIT
// Names: a set of distinct names. A wanted name that is taken gets a number appended: "x#2".
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
    /// The wanted name, with a number appended if it is taken. This call does not take it.
    std::string unused(const std::string& wanted) {
        if (!has(wanted)) return wanted;
        int& next = next_.try_emplace(wanted, 2).first->second;
        while (has(cat(wanted, "#", next))) ++next;
        return cat(wanted, "#", next);
    }
    /// Takes the name that unused() returns, and returns it.
    std::string take(const std::string& wanted) { return *taken_.insert(unused(wanted)).first; }

  private:
    std::set<std::string> taken_;
    /// The next number to try for a name. Thousands of nodes may have the same name.
    std::map<std::string, int> next_;
};

}  // namespace dlprim::onnx

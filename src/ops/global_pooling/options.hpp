// SPDX-License-Identifier: MIT
// Options of GlobalPooling.
#pragma once

#include "base/attrs.hpp"
#include "base/text.hpp"

namespace dlprim::global_pooling {

struct Options {
    bool maximum = true;  ///< false: the mean

    explicit Options(const Attrs& attrs) {
        static const std::vector<std::string> names{"max", "avg"};
        const std::string& name = attrs.text("mode");
        require(name == "max" || name == "avg", "mode '", name, "' is not one of max, avg",
                did_you_mean(name, names));
        maximum = name == "max";
    }
};

}  // namespace dlprim::global_pooling

// SPDX-License-Identifier: MIT
// Options of Elementwise.
#pragma once

#include "base/attrs.hpp"
#include "base/text.hpp"

namespace dlprim::elementwise {

enum class Operation { sum, prod, max };

struct Options {
    Operation operation = Operation::sum;
    double coef1 = 1, coef2 = 1;  ///< factors of the two tensors
    std::string activation;

    explicit Options(const Attrs& attrs)
        : coef1(attrs.number("coef1")),
          coef2(attrs.number("coef2")),
          activation(attrs.text("activation")) {
        static const std::vector<std::string> names{"sum", "prod", "max"};
        const std::string& name = attrs.text("operation");
        if (name == "sum")
            operation = Operation::sum;
        else if (name == "prod")
            operation = Operation::prod;
        else if (name == "max")
            operation = Operation::max;
        else
            fail(ErrorKind::invalid_argument, "operation '", name, "' is not one of sum, prod, max",
                 did_you_mean(name, names));
    }
};

}  // namespace dlprim::elementwise

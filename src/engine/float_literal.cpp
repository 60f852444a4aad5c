// SPDX-License-Identifier: MIT
// Float literals of OpenCL C.
#include "engine/float_literal.hpp"

#include <charconv>
#include <cmath>

namespace dlprim {

std::string float_literal(double value) {
    if (std::isnan(value)) return "NAN";
    // From this value on, the nearest float is infinite.
    if (std::fabs(value) >= 3.4028235677973366e38) return value > 0 ? "INFINITY" : "-INFINITY";
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value)).ptr;
    std::string text(buffer, end);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text + "f";
}

}  // namespace dlprim

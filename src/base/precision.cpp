// SPDX-License-Identifier: MIT
// Names of precisions.
#include <dlprim/precision.hpp>

#include "base/text.hpp"

namespace dlprim {

std::string_view name_of(Precision precision) noexcept {
    switch (precision) {
        case Precision::tf32:
            return "tf32";
        case Precision::fp16:
            return "fp16";
        case Precision::bf16:
            return "bf16";
        default:
            return "fp32";
    }
}

Precision parse_precision(std::string_view name) {
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
        if (name == name_of(precision)) return precision;
    fail(ErrorKind::invalid_argument, "there is no precision '", name,
         "'; it must be fp32, tf32, fp16 or bf16");
}

}  // namespace dlprim

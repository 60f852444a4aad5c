// SPDX-License-Identifier: MIT
// Names of precisions, and which of them are offered.
#include <dlprim/precision.hpp>

#include "base/text.hpp"

namespace dlprim {

std::string_view name_of(Precision precision) noexcept {
    return precision == Precision::tf32 ? "tf32" : "fp32";
}

Precision parse_precision(std::string_view name) {
    for (const Precision precision : {Precision::fp32, Precision::tf32})
        if (name == name_of(precision)) return precision;
    if (name == "fp16" || name == "bf16")
        fail(ErrorKind::unsupported, "precision ", name,
             " is not offered by this version; fp32 and tf32 are");
    fail(ErrorKind::invalid_argument, "there is no precision '", name,
         "'; fp32 and tf32 are offered");
}

}  // namespace dlprim

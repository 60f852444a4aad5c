// SPDX-License-Identifier: MIT
// TooLarge: the error of a plan that does not fit, with the batch that would.
#pragma once

#include <dlprim/error.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace dlprim {

/// A plan needs more memory than there is.
class TooLarge : public Error {
  public:
    /// `need` says what is needed and what there is. `batch` is the largest batch that fits, 0
    /// where not even one sample does, and nothing where another batch would not help or is not
    /// known.
    TooLarge(const std::string& needed, std::optional<std::int64_t> batch, bool is_estimate);
    std::string need;
    std::optional<std::int64_t> largest_batch;
};

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// The whole numbers that a generated kernel takes as parameters: sizes, strides, counts. What only
// differs in them shares a text, and so a program.
#pragma once

#include "engine/pointwise/job.hpp"

#include <string>
#include <vector>

namespace dlprim::pointwise {

/// A kernel parameter that is a number.
struct KernelNumber {
    std::string name;
    bool real = false;  ///< float; otherwise long
    std::int64_t whole = 0;
    float value = 0;
};

/// Numbers become parameters in the order in which they are first named.
class KernelNumbers {
  public:
    /// `prefix` stands before the names in the text, where the kernel keeps converted copies.
    explicit KernelNumbers(const Job& job, std::string prefix = {})
        : job_(job), prefix_(std::move(prefix)) {}

    /// How the text names the number.
    std::string name(const std::string& name, std::int64_t value);
    /// The stride of a class in a dimension: "0", "1" or a number's name.
    std::string stride(int klass, int dim);
    /// What a position in a dimension adds to the offset of a class: " + i * stride", or nothing.
    /// Dimension -1 adds nothing.
    std::string step(const std::string& position, int klass, int dim);

    const std::vector<KernelNumber>& all() const { return all_; }

  private:
    const Job& job_;
    std::string prefix_;
    std::vector<KernelNumber> all_;
};

}  // namespace dlprim::pointwise

// SPDX-License-Identifier: MIT
// The integers that a generated kernel has as parameters: sizes, strides, counts. Kernels that
// differ only in them share one text, and so one program.
#pragma once

#include "engine/pointwise/job.hpp"

#include <string>
#include <vector>

namespace dlprim::pointwise {

/// A number that is a kernel parameter.
struct KernelNumber {
    std::string name;
    bool real = false;  ///< float; otherwise long
    std::int64_t whole = 0;
    float value = 0;
    int argument = -1;      ///< the scalar of the run that it gets, or -1: `whole` or `value`
    DType as = DType::i64;  ///< of the argument's bits
};

/// Numbers become parameters in the order of their first use.
class KernelNumbers {
  public:
    /// `prefix` is put before names in the text if the kernel has converted copies of the numbers.
    explicit KernelNumbers(const Job& job, std::string prefix = {})
        : job_(job), prefix_(std::move(prefix)) {}

    /// The name of the number in the text.
    std::string name(const std::string& name, std::int64_t value);
    /// The stride of a class in a dimension: "0", "1" or a number's name.
    std::string stride(int klass, int dim);
    /// The contribution of a position in a dimension to the offset of a class: " + i * stride", or
    /// nothing. Dimension -1 contributes nothing.
    std::string step(const std::string& position, int klass, int dim);

    const std::vector<KernelNumber>& all() const { return all_; }

  private:
    const Job& job_;
    std::string prefix_;
    std::vector<KernelNumber> all_;
};

}  // namespace dlprim::pointwise

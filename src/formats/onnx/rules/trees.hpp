// SPDX-License-Identifier: MIT
// Decision trees, which are walked on the host, for the rules that read them from a node in one
// form or another.
#pragma once

#include "formats/onnx/call.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dlprim::onnx::trees {

/// What a node asks of a feature, as TreeEnsemble numbers it.
enum Mode : std::int64_t { less_equal, less, greater_equal, greater, equal, not_equal, member };
/// What becomes of the trees' weights, as TreeEnsemble numbers it.
enum Aggregate : std::int64_t { average, sum, smallest, largest };

struct Branch {
    std::size_t to = 0;
    bool leaf = false;
};

struct TreeNode {
    std::int64_t mode = less_equal;
    double split = 0;
    std::vector<double> members;
    std::size_t feature = 0;
    bool missing_is_true = false;
    Branch when_true, when_false;
};

/// What a leaf gives to a result.
struct Vote {
    std::size_t result = 0;
    double weight = 0;
};

struct Trees {
    std::vector<TreeNode> nodes;
    std::vector<std::vector<Vote>> leaves;
    std::vector<Branch> roots;
    std::vector<double> base;  ///< by result, added at the end; empty: zeros
    std::size_t results = 1;
    std::int64_t aggregate = sum;
};

/// The results [rows, results] in this type for the call's input 0, [rows, features]. Throws
/// Error(unsupported) in a static import, whose networks have no steps on the host.
Ref run(Call& call, const Trees& trees, DType dtype);

/// The numbers of an attribute that is a tensor; none where it is not given.
std::vector<double> tensor_numbers(Call& call, std::string_view name);

}  // namespace dlprim::onnx::trees

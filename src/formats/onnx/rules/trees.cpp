// SPDX-License-Identifier: MIT
// Decision trees, and TreeEnsemble of the domain ai.onnx.ml; see trees.hpp.
#include "formats/onnx/rules/trees.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim::onnx {

namespace trees {

namespace {

bool holds(const TreeNode& node, double x) {
    if (std::isnan(x) && node.missing_is_true) return true;
    switch (node.mode) {
        case less_equal:
            return x <= node.split;
        case less:
            return x < node.split;
        case greater_equal:
            return x >= node.split;
        case greater:
            return x > node.split;
        case equal:
            return x == node.split;
        case not_equal:
            return x != node.split;
        default:
            return std::find(node.members.begin(), node.members.end(), x) != node.members.end();
    }
}

/// The leaf that a row of features comes to. A tree whose nodes form a circle is an error.
std::size_t leaf_of(const Trees& trees, Branch at, const double* row) {
    for (std::size_t steps = 0; !at.leaf; ++steps) {
        require(steps <= trees.nodes.size(), "the nodes of a tree form a circle");
        const TreeNode& node = trees.nodes[at.to];
        at = holds(node, row[node.feature]) ? node.when_true : node.when_false;
    }
    return at.to;
}

void predict(const Trees& trees, const double* row, double* results) {
    const double first = trees.aggregate == smallest  ? std::numeric_limits<float>::max()
                         : trees.aggregate == largest ? std::numeric_limits<float>::lowest()
                                                      : 0;
    std::fill_n(results, trees.results, first);
    const double share =
        trees.aggregate == average ? 1 / static_cast<double>(trees.roots.size()) : 1;
    for (const Branch& root : trees.roots) {
        for (const Vote& vote : trees.leaves[leaf_of(trees, root, row)]) {
            double& result = results[vote.result];
            if (trees.aggregate == smallest)
                result = std::min(result, vote.weight);
            else if (trees.aggregate == largest)
                result = std::max(result, vote.weight);
            else
                result += vote.weight * share;
        }
    }
    for (std::size_t i = 0; i < trees.base.size(); ++i) results[i] += trees.base[i];
}

}  // namespace

Ref run(Call& call, const Trees& trees, DType dtype) {
    call.build.claim({call.shape(0)[0], static_cast<std::int64_t>(trees.results)}, DType::f64);
    const std::vector<Ref> made =
        call.build.call_host({call.in(0)}, [trees, dtype](const std::vector<HostValue>& in) {
            const std::vector<double> rows = to_numbers(*in[0]);
            const auto count = static_cast<std::size_t>(in[0]->shape[0]),
                       features = static_cast<std::size_t>(in[0]->shape[1]);
            std::vector<double> results(count * trees.results);
            for (std::size_t i = 0; i < count; ++i)
                predict(trees, rows.data() + i * features, results.data() + i * trees.results);
            return std::vector<HostValue>{host_numbers(
                {in[0]->shape[0], static_cast<std::int64_t>(trees.results)}, results, dtype)};
        });
    call.supports(!made.empty(),
                  "decision trees of features that are computed are not supported in a "
                  "static network");
    return made[0];
}

std::vector<double> tensor_numbers(Call& call, std::string_view name) {
    const Attribute* const found = call.attribute(name);
    if (!found) return {};
    const auto* const tensor = std::get_if<Tensor>(&found->data);
    call.check(tensor != nullptr, "attribute '", name, "' is no tensor");
    call.supports(tensor->value != nullptr, "attribute '", name, "' ", tensor->refusal);
    return to_numbers(*tensor->value);
}

}  // namespace trees

namespace {

using namespace trees;

std::vector<TreeNode> read_nodes(Call& call, std::int64_t features, std::size_t leaves) {
    const std::vector<double> splits = tensor_numbers(call, "nodes_splits"),
                              modes = tensor_numbers(call, "nodes_modes"),
                              members = tensor_numbers(call, "membership_values");
    const Ints feature = call.integers("nodes_featureids"),
               to_true = call.integers("nodes_truenodeids"),
               to_false = call.integers("nodes_falsenodeids"),
               true_leafs = call.integers("nodes_trueleafs"),
               false_leafs = call.integers("nodes_falseleafs"),
               missing = call.integers("nodes_missing_value_tracks_true", Ints(splits.size(), 0));
    const std::size_t count = splits.size();
    for (const std::size_t size : {modes.size(), feature.size(), to_true.size(), to_false.size(),
                                   true_leafs.size(), false_leafs.size(), missing.size()})
        call.check(size == count, "attributes of nodes have ", size, " and ", count, " entries");
    const auto branch = [&](std::int64_t to, std::int64_t leaf) {
        const auto limit = static_cast<std::int64_t>(leaf != 0 ? leaves : count);
        call.check(to >= 0 && to < limit, "a node leads to number ", to, " of ", limit);
        return Branch{static_cast<std::size_t>(to), leaf != 0};
    };
    std::vector<TreeNode> nodes(count);
    for (std::size_t i = 0; i < count; ++i) {
        call.check(feature[i] >= 0 && feature[i] < features, "a node asks for feature ", feature[i],
                   " of ", features);
        call.check(modes[i] >= 0 && modes[i] <= 6, "a node has mode ", modes[i]);  // not NaN
        const auto mode = static_cast<std::int64_t>(modes[i]);
        nodes[i] = {mode,
                    splits[i],
                    {},
                    static_cast<std::size_t>(feature[i]),
                    missing[i] != 0,
                    branch(to_true[i], true_leafs[i]),
                    branch(to_false[i], false_leafs[i])};
    }
    // The members of all nodes of that mode in the trees' order, each list ended by a NaN.
    std::size_t at = 0;
    for (TreeNode& node : nodes) {
        if (node.mode != member) continue;
        while (at < members.size() && !std::isnan(members[at]))
            node.members.push_back(members[at++]);
        call.check(at < members.size(), "membership_values has too few lists");
        ++at;
    }
    return nodes;
}

Trees read_trees(Call& call, std::int64_t features) {
    Trees trees;
    const std::vector<double> weights = tensor_numbers(call, "leaf_weights");
    const Ints targets = call.integers("leaf_targetids");
    trees.results =
        static_cast<std::size_t>(std::max<std::int64_t>(call.integer("n_targets", 1), 1));
    trees.aggregate = call.integer("aggregate_function", sum);
    call.supports(call.integer("post_transform", 0) == 0,
                  "attribute 'post_transform' is not supported");
    call.ignore("nodes_hitrates");
    call.check(trees.aggregate >= average && trees.aggregate <= largest, "aggregate_function is ",
               trees.aggregate);
    call.check(targets.size() == weights.size(), "leaves have ", targets.size(), " targets and ",
               weights.size(), " weights");
    for (std::size_t i = 0; i < targets.size(); ++i) {
        call.check(targets[i] >= 0 && targets[i] < static_cast<std::int64_t>(trees.results),
                   "a leaf has target ", targets[i], " of ", trees.results);
        trees.leaves.push_back({{static_cast<std::size_t>(targets[i]), weights[i]}});
    }
    trees.nodes = read_nodes(call, features, weights.size());
    for (const std::int64_t root : call.integers("tree_roots")) {
        call.check(root >= 0 && root < static_cast<std::int64_t>(trees.nodes.size()),
                   "a tree begins at node ", root, " of ", trees.nodes.size());
        // A tree that is a leaf is a node whose branches both lead to it.
        trees.roots.push_back({static_cast<std::size_t>(root), false});
    }
    return trees;
}

void tree_ensemble(Call& call) {
    const Shape& x = call.shape(0);
    call.check(x.rank() == 2, "an input of shape ", x.str(), " has no rows of features");
    call.set(0, trees::run(call, read_trees(call, x[1]), call.dtype(0)));
}

}  // namespace

std::vector<Rule> tree_rules() {
    return {{"ai.onnx.ml.TreeEnsemble", 5, tree_ensemble}};
}

}  // namespace dlprim::onnx

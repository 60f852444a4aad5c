// SPDX-License-Identifier: MIT
// TreeEnsemble of the domain ai.onnx.ml: decision trees, which are walked on the host.
#include "formats/onnx/call.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim::onnx {

namespace {

enum Mode : std::int64_t { less_equal, less, greater_equal, greater, equal, not_equal, member };
enum Aggregate : std::int64_t { average, sum, smallest, largest };

struct Branch {
    std::size_t to = 0;
    bool leaf = false;
};

struct TreeNode {
    std::int64_t mode = 0;
    double split = 0;
    std::vector<double> members;
    std::size_t feature = 0;
    bool missing_is_true = false;
    Branch when_true, when_false;
};

struct Trees {
    std::vector<TreeNode> nodes;
    std::vector<std::size_t> targets;  ///< by leaf
    std::vector<double> weights;       ///< by leaf
    std::vector<Branch> roots;
    std::size_t results = 1;
    std::int64_t aggregate = sum;
};

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
    for (const Branch& root : trees.roots) {
        const std::size_t leaf = leaf_of(trees, root, row);
        double& result = results[trees.targets[leaf]];
        const double weight = trees.weights[leaf];
        if (trees.aggregate == smallest)
            result = std::min(result, weight);
        else if (trees.aggregate == largest)
            result = std::max(result, weight);
        else
            result += trees.aggregate == average ? weight / static_cast<double>(trees.roots.size())
                                                 : weight;
    }
}

std::vector<double> tensor_numbers(Call& call, std::string_view name) {
    const Attribute* const found = call.attribute(name);
    if (!found) return {};
    const auto* const tensor = std::get_if<Tensor>(&found->data);
    call.check(tensor != nullptr, "attribute '", name, "' is no tensor");
    call.supports(tensor->value != nullptr, "attribute '", name, "' ", tensor->refusal);
    return to_numbers(*tensor->value);
}

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
        const auto mode = static_cast<std::int64_t>(modes[i]);
        call.check(mode >= less_equal && mode <= member, "a node has mode ", modes[i]);
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
    trees.weights = tensor_numbers(call, "leaf_weights");
    trees.results =
        static_cast<std::size_t>(std::max<std::int64_t>(call.integer("n_targets", 1), 1));
    trees.aggregate = call.integer("aggregate_function", sum);
    call.supports(call.integer("post_transform", 0) == 0,
                  "attribute 'post_transform' is not supported");
    call.ignore("nodes_hitrates");
    call.check(trees.aggregate >= average && trees.aggregate <= largest, "aggregate_function is ",
               trees.aggregate);
    for (const std::int64_t target : call.integers("leaf_targetids")) {
        call.check(target >= 0 && target < static_cast<std::int64_t>(trees.results),
                   "a leaf has target ", target, " of ", trees.results);
        trees.targets.push_back(static_cast<std::size_t>(target));
    }
    call.check(trees.targets.size() == trees.weights.size(), "leaves have ", trees.targets.size(),
               " targets and ", trees.weights.size(), " weights");
    trees.nodes = read_nodes(call, features, trees.weights.size());
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
    const Trees trees = read_trees(call, x[1]);
    const std::vector<Ref> made =
        call.build.call_host({call.in(0)}, [trees](const std::vector<HostValue>& in) {
            const std::vector<double> rows = to_numbers(*in[0]);
            const auto count = static_cast<std::size_t>(in[0]->shape[0]),
                       features = static_cast<std::size_t>(in[0]->shape[1]);
            std::vector<double> results(count * trees.results);
            for (std::size_t i = 0; i < count; ++i)
                predict(trees, rows.data() + i * features, results.data() + i * trees.results);
            return std::vector<HostValue>{
                host_numbers({in[0]->shape[0], static_cast<std::int64_t>(trees.results)}, results,
                             in[0]->dtype)};
        });
    call.supports(!made.empty(),
                  "decision trees of features that are computed are not supported in a "
                  "static network");
    call.set(0, made[0]);
}

const Rule rules[] = {{"ai.onnx.ml.TreeEnsemble", 5, tree_ensemble}};

}  // namespace

std::span<const Rule> tree_rules() {
    return rules;
}

}  // namespace dlprim::onnx

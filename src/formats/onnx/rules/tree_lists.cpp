// SPDX-License-Identifier: MIT
// TreeEnsembleClassifier and TreeEnsembleRegressor of the domain ai.onnx.ml, whose nodes and
// weights are named by the numbers of a tree and of a node in it.
#include "formats/onnx/rules/classes.hpp"
#include "formats/onnx/rules/trees.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace dlprim::onnx {

namespace {

using namespace trees;

/// Numbers of an attribute that is a list of floats, or of the tensor of doubles beside it.
std::vector<double> list_or_tensor(Call& call, const std::string& name) {
    const std::vector<double> doubles = tensor_numbers(call, name + "_as_tensor");
    return doubles.empty() ? call.numbers(name) : doubles;
}

/// Where nodes are: a tree's number and a node's number in it.
using Place = std::pair<std::int64_t, std::int64_t>;

/// The lists of attributes nodes_*, one entry for each node.
struct NodeLists {
    Ints trees, ids, features, when_true, when_false, missing;
    std::vector<double> values;
    std::vector<std::string> modes;

    explicit NodeLists(Call& call)
        : trees(call.integers("nodes_treeids")),
          ids(call.integers("nodes_nodeids")),
          features(call.integers("nodes_featureids")),
          when_true(call.integers("nodes_truenodeids")),
          when_false(call.integers("nodes_falsenodeids")),
          missing(call.integers("nodes_missing_value_tracks_true", Ints(ids.size(), 0))),
          values(list_or_tensor(call, "nodes_values")),
          modes(call.texts("nodes_modes")) {
        call.ignore("nodes_hitrates");
        call.ignore("nodes_hitrates_as_tensor");
        for (const std::size_t size :
             {trees.size(), features.size(), when_true.size(), when_false.size(), missing.size(),
              values.size(), modes.size()})
            call.check(size == ids.size(), "attributes of nodes have ", size, " and ", ids.size(),
                       " entries");
    }
};

/// The trees without their weights, and by place which leaf is there.
struct ListedTrees {
    Trees trees;
    std::map<Place, std::size_t> leaves;
};

std::int64_t mode_of(Call& call, const std::string& name) {
    constexpr std::array names{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                               "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
    const auto found = std::find(names.begin(), names.end(), name);
    call.supports(found != names.end(), "a node of mode '", name, "' is not supported");
    return found - names.begin();
}

/// By place, which node or leaf is there; both are numbered in the order of the lists.
std::map<Place, Branch> places_of(Call& call, const NodeLists& lists) {
    std::map<Place, Branch> places;
    std::size_t nodes = 0, leaves = 0;
    for (std::size_t i = 0; i < lists.ids.size(); ++i) {
        const bool leaf = lists.modes[i] == "LEAF";
        const Place place{lists.trees[i], lists.ids[i]};
        const bool added = places.emplace(place, Branch{leaf ? leaves++ : nodes++, leaf}).second;
        call.check(added, "tree ", lists.trees[i], " has two nodes ", lists.ids[i]);
    }
    return places;
}

ListedTrees read_listed(Call& call, std::int64_t features) {
    const NodeLists lists(call);
    const std::map<Place, Branch> places = places_of(call, lists);
    ListedTrees result;
    std::set<Place> inner;
    const auto branch = [&](std::size_t i, std::int64_t to) {
        const Place place{lists.trees[i], to};
        const auto found = places.find(place);
        call.check(found != places.end(), "node ", lists.ids[i], " of tree ", lists.trees[i],
                   " leads to node ", to, ", which is not there");
        inner.insert(place);
        return found->second;
    };
    for (std::size_t i = 0; i < lists.ids.size(); ++i) {
        if (lists.modes[i] == "LEAF") continue;
        call.check(lists.features[i] >= 0 && lists.features[i] < features,
                   "a node asks for feature ", lists.features[i], " of ", features);
        result.trees.nodes.push_back({mode_of(call, lists.modes[i]),
                                      lists.values[i],
                                      {},
                                      static_cast<std::size_t>(lists.features[i]),
                                      lists.missing[i] != 0,
                                      branch(i, lists.when_true[i]),
                                      branch(i, lists.when_false[i])});
    }
    // A tree begins at the node that no other one leads to.
    std::set<std::int64_t> begun;
    for (const auto& [place, where] : places) {
        if (inner.count(place)) continue;
        call.check(begun.insert(place.first).second, "tree ", place.first, " has two beginnings");
        result.trees.roots.push_back(where);
    }
    const std::set<std::int64_t> all(lists.trees.begin(), lists.trees.end());
    call.check(begun.size() == all.size(), "the nodes of a tree form a circle");
    for (const auto& [place, where] : places)
        if (where.leaf) result.leaves[place] = where.to;
    result.trees.leaves.resize(result.leaves.size());
    return result;
}

/// Gives the leaves the weights of attributes PREFIX_treeids, _nodeids, _ids and _weights. What
/// they call result `first` is ours 0.
void add_votes(Call& call, ListedTrees& listed, const std::string& prefix, std::int64_t first) {
    const Ints tree = call.integers(prefix + "_treeids"), node = call.integers(prefix + "_nodeids"),
               ids = call.integers(prefix + "_ids");
    const std::vector<double> weights = list_or_tensor(call, prefix + "_weights");
    for (const std::size_t size : {node.size(), ids.size(), weights.size()})
        call.check(size == tree.size(), "attributes of weights have ", size, " and ", tree.size(),
                   " entries");
    for (std::size_t i = 0; i < tree.size(); ++i) {
        const auto leaf = listed.leaves.find({tree[i], node[i]});
        call.check(leaf != listed.leaves.end(), "node ", node[i], " of tree ", tree[i],
                   " has a weight and is no leaf");
        call.check(
            ids[i] >= first && ids[i] - first < static_cast<std::int64_t>(listed.trees.results),
            "a leaf has a weight for result ", ids[i], " of ", listed.trees.results);
        listed.trees.leaves[leaf->second].push_back(
            {static_cast<std::size_t>(ids[i] - first), weights[i]});
    }
}

void tree_regressor(Call& call) {
    const Shape& x = call.shape(0);
    call.check(x.rank() == 2, "an input of shape ", x.str(), " has no rows of features");
    ListedTrees listed = read_listed(call, x[1]);
    const std::int64_t targets = call.integer("n_targets", 1);
    call.check(targets >= 1 && targets < (1 << 24), "n_targets is ", targets);
    listed.trees.results = static_cast<std::size_t>(targets);
    add_votes(call, listed, "target", 0);
    const std::string aggregate = call.text("aggregate_function", "SUM");
    constexpr std::array names{"AVERAGE", "SUM", "MIN", "MAX"};
    const auto found = std::find(names.begin(), names.end(), aggregate);
    call.check(found != names.end(), "aggregate_function '", aggregate, "' is unknown");
    listed.trees.aggregate = found - names.begin();
    listed.trees.base = list_or_tensor(call, "base_values");
    call.check(listed.trees.base.empty() || listed.trees.base.size() == listed.trees.results,
               "there are ", listed.trees.base.size(), " base_values for ", targets, " targets");
    call.set(0, transformed_scores(call, trees::run(call, listed.trees, DType::f32)));
}

/// The scores of two classes where the trees have one result: how much the second class is
/// likelier. Weights that are shares, all of them positive, are those of the second class.
Ref scores_of_two(Call& call, Ref second, bool shares) {
    Builder& build = call.build;
    const Ref first = build.pointwise(shares ? "y0 = 1 - x0" : "y0 = -x0", {second});
    return build.concat({first, second}, 1);
}

void tree_classifier(Call& call) {
    const Shape& x = call.shape(0);
    call.check(x.rank() == 2, "an input of shape ", x.str(), " has no rows of features");
    ListedTrees listed = read_listed(call, x[1]);
    const ClassLabels labels = class_labels(call);
    const Ints ids = call.integers("class_ids");
    const bool one = labels.size() == 2 && !ids.empty() &&
                     std::count(ids.begin(), ids.end(), ids[0]) == std::ssize(ids);
    listed.trees.results = one ? 1 : labels.size();
    add_votes(call, listed, "class", one ? ids[0] : 0);
    listed.trees.base = list_or_tensor(call, "base_values");
    std::vector<double>& base = listed.trees.base;
    if (one && base.size() == 2) base.erase(base.begin());
    call.check(base.empty() || base.size() == listed.trees.results, "there are ", base.size(),
               " base_values for ", labels.size(), " classes");
    Ref scores = trees::run(call, listed.trees, DType::f32);
    if (one) {
        const std::vector<double> weights = list_or_tensor(call, "class_weights");
        const bool positive =
            std::all_of(weights.begin(), weights.end(), [](double weight) { return weight >= 0; });
        const bool logistic = call.text("post_transform", "NONE") == "LOGISTIC";
        scores = scores_of_two(call, scores, positive && !logistic);
    }
    set_labels(call, labels, scores);
    if (call.wants(1)) call.set(1, transformed_scores(call, scores));
    call.ignore("post_transform");
}

}  // namespace

std::vector<Rule> tree_list_rules() {
    return {
        {"ai.onnx.ml.TreeEnsembleClassifier", 1, tree_classifier, Rule::Strings::own},
        {"ai.onnx.ml.TreeEnsembleRegressor", 1, tree_regressor},
    };
}

}  // namespace dlprim::onnx

// SPDX-License-Identifier: MIT
// SVMClassifier and SVMRegressor of the domain ai.onnx.ml: kernels of the input with all support
// vectors, weighed, and of a classifier the votes of all pairs of classes.
#include "formats/onnx/rules/classes.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dlprim::onnx {

namespace {

Ref floats(Builder& build, const Shape& shape, const std::vector<double>& values) {
    return build.constant("", host_numbers(shape, values, DType::f32));
}

Ref rows_of(Call& call) {
    const Shape& x = call.shape(0);
    call.check(x.rank() == 1 || x.rank() == 2, "an input of shape ", x.str(),
               " has no rows of features");
    const Ref rows = x.rank() == 1 ? call.build.reshape(call.in(0), {1, x[0]}) : call.in(0);
    return call.build.cast(rows, DType::f32);
}

/// The kernel function of rows x and `count` vectors, [rows, count].
Ref kernels(Call& call, Ref x, const std::vector<double>& vectors, std::int64_t count,
            const std::string& type) {
    Builder& build = call.build;
    const Shape& shape = x->spec.shape;
    call.check(count >= 1 && std::ssize(vectors) == count * shape[1], "there are ", vectors.size(),
               " numbers for ", count, " vectors of ", shape[1], " features");
    std::vector<double> given = call.numbers("kernel_params", {0, 0, 0});
    call.check(given.size() == 3, "kernel_params has ", given.size(), " entries, not 3");
    if (type == "RBF")
        return build.reshape(
            build.pointwise("y0 = exp(-p0 * x0)",
                            {build.pointwise("y0 = sum[2]((x0 - x1) * (x0 - x1))",
                                             {build.reshape(x, {shape[0], 1, shape[1]}),
                                              floats(build, {1, count, shape[1]}, vectors)})},
                            {given[0]}),
            {shape[0], count});
    const Ref dot = build.add1("MatMul", {x, floats(build, {count, shape[1]}, vectors)},
                               {{"transpose_b", true}});
    if (type == "LINEAR") return dot;
    if (type == "POLY") return build.pointwise("y0 = pow(p0 * x0 + p1, p2)", {dot}, given);
    call.supports(type == "SIGMOID", "kernel_type '", type, "' is not supported");
    return build.pointwise("y0 = tanh(p0 * x0 + p1)", {dot}, {given[0], given[1]});
}

/// Sums of the kernels, weighed [vectors, sums]. Large weights cancel, so that products are summed
/// more exactly than a matrix product sums them.
Ref weighed(Builder& build, Ref kernels, const std::vector<double>& weights, std::int64_t sums) {
    const Shape& shape = kernels->spec.shape;
    const Ref sum =
        build.pointwise("y0 = sum[1](x0 * x1)", {build.reshape(kernels, {shape[0], shape[1], 1}),
                                                 floats(build, {1, shape[1], sums}, weights)});
    return build.reshape(sum, {shape[0], sums});
}

void regressor(Call& call) {
    Builder& build = call.build;
    const Ref x = rows_of(call);
    const std::vector<double> vectors = call.numbers("support_vectors"),
                              weights = call.numbers("coefficients"), rho = call.numbers("rho");
    const std::int64_t count = call.integer("n_supports", 0);
    call.check(rho.size() == 1, "rho has ", rho.size(), " entries, not 1");
    call.supports(call.text("post_transform", "NONE") == "NONE",
                  "a post_transform of a regression is not supported");
    const std::string type = call.text("kernel_type", "LINEAR");
    Ref y = nullptr;
    if (count > 0) {
        call.check(std::ssize(weights) == count, "there are ", weights.size(), " coefficients for ",
                   count, " support vectors");
        const Ref all = kernels(call, x, vectors, count, type);
        y = weighed(build, all, weights, 1);
    } else {
        y = kernels(call, x, weights, 1, "LINEAR");
    }
    const bool one_class = call.integer("one_class", 0) != 0;
    call.set(0,
             build.pointwise(one_class ? "y0 = x0 + p0 > 0 ? 1 : -1" : "y0 = x0 + p0", {y}, rho));
}

/// The attributes of a classifier of classes whose support vectors stand one after the other.
struct Pairs {
    std::int64_t classes, count, vectors;
    std::vector<double> weights;       ///< [vectors, count]: of each pair's score
    std::vector<double> first, other;  ///< [count, classes]: whom a pair's vote is for
};

Pairs read_pairs(Call& call, std::int64_t classes) {
    const Ints by_class = call.integers("vectors_per_class");
    const std::vector<double> given = call.numbers("coefficients");
    call.check(std::ssize(by_class) == classes, "vectors_per_class has ", by_class.size(),
               " entries for ", classes, " classes");
    Ints begins{0};
    for (const std::int64_t size : by_class) {
        call.check(size >= 0 && size < (1 << 24), "a class has ", size, " support vectors");
        begins.push_back(begins.back() + size);
    }
    Pairs pairs{classes, classes * (classes - 1) / 2, begins.back(), {}, {}, {}};
    call.check(std::ssize(given) == (classes - 1) * pairs.vectors, "there are ", given.size(),
               " coefficients for ", pairs.vectors, " support vectors of ", classes, " classes");
    call.build.claim({pairs.vectors + 2 * classes, pairs.count}, DType::f64);
    pairs.weights.assign(static_cast<std::size_t>(pairs.vectors * pairs.count), 0);
    pairs.first.assign(static_cast<std::size_t>(pairs.count * classes), 0);
    pairs.other = pairs.first;
    std::int64_t pair = 0;
    const auto weigh = [&](std::int64_t of, std::int64_t row) {
        for (std::int64_t m = begins[static_cast<std::size_t>(of)];
             m < begins[static_cast<std::size_t>(of) + 1]; ++m)
            pairs.weights[static_cast<std::size_t>(m * pairs.count + pair)] =
                given[static_cast<std::size_t>(row * pairs.vectors + m)];
    };
    for (std::int64_t i = 0; i < classes; ++i) {
        for (std::int64_t j = i + 1; j < classes; ++j, ++pair) {
            weigh(i, j - 1);
            weigh(j, i);
            pairs.first[static_cast<std::size_t>(pair * classes + i)] = 1;
            pairs.other[static_cast<std::size_t>(pair * classes + j)] = 1;
        }
    }
    return pairs;
}

/// One row's probabilities of classes from those of pairs, r[i, j]: the second method of Wu, Lin
/// and Weng (Probability Estimates for Multi-class Classification by Pairwise Coupling), as libsvm
/// and ONNX Runtime compute it, to the same bound of error.
void couple(std::size_t classes, const std::vector<float>& r, float* p) {
    std::vector<float> q(classes * classes, 0), qp(classes, 0);
    const auto at = [&](std::size_t i, std::size_t j) { return i * classes + j; };
    for (std::size_t i = 0; i < classes; ++i) {
        p[i] = 1 / static_cast<float>(classes);
        for (std::size_t j = 0; j < classes; ++j) {
            if (j == i) continue;
            q[at(i, i)] += r[at(j, i)] * r[at(j, i)];
            q[at(i, j)] = j < i ? q[at(j, i)] : -r[at(j, i)] * r[at(i, j)];
        }
    }
    const float bound = 0.005f / static_cast<float>(classes);
    for (int round = 0; round < 100; ++round) {
        float pqp = 0, error = 0;
        for (std::size_t i = 0; i < classes; ++i) {
            qp[i] = 0;
            for (std::size_t j = 0; j < classes; ++j) qp[i] += q[at(i, j)] * p[j];
            pqp += p[i] * qp[i];
        }
        for (std::size_t i = 0; i < classes; ++i) error = std::max(error, std::abs(qp[i] - pqp));
        if (error < bound) break;
        for (std::size_t i = 0; i < classes; ++i) {
            const float step = (pqp - qp[i]) / q[at(i, i)];
            p[i] += step;
            pqp = (pqp + step * (step * q[at(i, i)] + 2 * qp[i])) / (1 + step) / (1 + step);
            for (std::size_t j = 0; j < classes; ++j) {
                qp[j] = (qp[j] + step * q[at(i, j)]) / (1 + step);
                p[j] /= 1 + step;
            }
        }
    }
}

/// Probabilities [rows, classes] from the scores of pairs, on the host.
Ref probabilities(Call& call, Ref scores, std::int64_t classes) {
    const std::vector<double> a = call.numbers("prob_a"), b = call.numbers("prob_b");
    const std::int64_t pairs = scores->spec.shape[1];
    call.check(std::ssize(a) == pairs && std::ssize(b) == pairs, "prob_a and prob_b have ",
               a.size(), " and ", b.size(), " entries for ", pairs, " pairs of classes");
    const Ref shares = call.build.pointwise(
        "y0 = min(max(1 - sigmoid(x0 * x1 + x2), p0), 1 - p0)",
        {scores, floats(call.build, {pairs}, a), floats(call.build, {pairs}, b)}, {1e-7});
    const std::vector<Ref> made = call.on_host(
        {shares},
        [classes](const std::vector<HostValue>& in) {
            const auto count = static_cast<std::size_t>(classes);
            const std::vector<double> given = to_numbers(*in[0]);
            const std::int64_t rows = in[0]->shape[0];
            std::vector<double> all;
            std::vector<float> r(count * count, 0), p(count);
            std::size_t next = 0;
            for (std::int64_t row = 0; row < rows; ++row) {
                for (std::size_t i = 0; i < count; ++i)
                    for (std::size_t j = i + 1; j < count; ++j) {
                        const auto share = static_cast<float>(given[next++]);
                        r[i * count + j] = share;
                        r[j * count + i] = 1 - share;
                    }
                couple(count, r, p.data());
                all.insert(all.end(), p.begin(), p.end());
            }
            return std::vector<HostValue>{host_numbers({rows, classes}, all, DType::f32)};
        },
        "the host couples the probabilities of pairs");
    return made[0];
}

/// The scores of one class for each row: weights without support vectors.
void linear_classifier(Call& call, const ClassLabels& labels, Ref x,
                       const std::vector<double>& rho) {
    Builder& build = call.build;
    const std::vector<double> weights = call.numbers("coefficients");
    const auto classes = static_cast<std::int64_t>(labels.size());
    const Ref scores =
        build.pointwise("y0 = x0 + p0", {kernels(call, x, weights, classes, "LINEAR")}, {rho[0]});
    // Of two classes the second has the label where a score is high enough, whichever it is.
    const bool positive =
        std::all_of(weights.begin(), weights.end(), [](double weight) { return weight >= 0; });
    Ref judged = scores;
    if (classes == 2 && call.numbers("prob_a").empty()) {
        const Ref top = build.pointwise("y0 = max[1](x0)", {scores});
        judged = build.pointwise(cat("y0 = x1 ", positive ? ">= 0.5" : "> 0", " ? index(1) : x0"),
                                 {scores, top});
    }
    set_labels(call, labels, judged);
    call.set(1, transformed_scores(call, scores));
}

void classifier(Call& call) {
    Builder& build = call.build;
    const ClassLabels labels = class_labels(call);
    const Ref x = rows_of(call);
    const auto classes = static_cast<std::int64_t>(labels.size());
    const std::vector<double> rho = call.numbers("rho"), vectors = call.numbers("support_vectors");
    const std::string type = call.text("kernel_type", "LINEAR");
    call.check(classes >= 2 && !rho.empty(), "there are ", classes, " classes and ", rho.size(),
               " entries of rho");
    const Ints by_class = call.integers("vectors_per_class");
    if (std::all_of(by_class.begin(), by_class.end(), [](std::int64_t n) { return n == 0; })) {
        call.ignore("prob_b");
        return linear_classifier(call, labels, x, rho);
    }
    const Pairs pairs = read_pairs(call, classes);
    call.check(std::ssize(rho) == pairs.count, "rho has ", rho.size(), " entries for ", pairs.count,
               " pairs of classes");
    const Ref all = kernels(call, x, vectors, pairs.vectors, type);
    const Ref scores = build.pointwise(
        "y0 = x0 + x1",
        {weighed(build, all, pairs.weights, pairs.count), floats(build, {pairs.count}, rho)});
    const auto votes_for = [&](const char* condition, const std::vector<double>& whom) {
        return build.add1("MatMul", {build.pointwise(cat("y0 = ", condition), {scores}, DType::f32),
                                     floats(build, {pairs.count, classes}, whom)});
    };
    const Ref votes = build.pointwise(
        "y0 = x0 + x1", {votes_for("x0 > 0", pairs.first), votes_for("!(x0 > 0)", pairs.other)});
    set_labels(call, labels, votes);
    call.ignore("post_transform");
    if (!call.numbers("prob_a").empty())
        return call.set(1, transformed_scores(call, probabilities(call, scores, classes)));
    call.ignore("prob_b");
    if (classes > 2) return call.set(1, transformed_scores(call, scores));
    // Two classes have one pair, whose score is that of the second class.
    const std::string transform = call.text("post_transform", "NONE");
    call.supports(transform != "PROBIT", "post_transform 'PROBIT' of one score is not supported");
    const bool logistic = transform == "LOGISTIC";
    const Ref first =
        build.pointwise(logistic || transform == "NONE" ? "y0 = -x0" : "y0 = 1 - x0", {scores});
    const Ref both = build.concat({first, scores}, 1);
    call.set(1, logistic ? transformed_scores(call, both) : both);
}

}  // namespace

std::vector<Rule> svm_rules() {
    return {
        {"ai.onnx.ml.SVMClassifier", 1, classifier, Rule::Strings::own},
        {"ai.onnx.ml.SVMRegressor", 1, regressor},
    };
}

}  // namespace dlprim::onnx

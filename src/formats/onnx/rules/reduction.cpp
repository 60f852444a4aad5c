// SPDX-License-Identifier: MIT
// Reductions over axes, which are an attribute in old operator sets and an input in new ones.
#include "formats/onnx/call.hpp"

#include <numeric>

namespace dlprim::onnx {

namespace {

struct Axes {
    Ints reduced;  ///< sorted; empty: nothing is reduced
    Shape output;  ///< with keepdims settled
};

Axes read_axes(Call& call, bool by_input) {
    const int rank = call.shape(0).rank();
    Axes axes;
    Ints given = by_input ? Ints{} : call.integers("axes");
    if (by_input && call.has(1)) given = call.known_integers(1, "axes");
    const bool none_is_all = !by_input || call.integer("noop_with_empty_axes", 0) == 0;
    axes.reduced = call.axes(std::move(given), rank);
    if (axes.reduced.empty() && none_is_all) {
        axes.reduced.resize(static_cast<std::size_t>(rank));
        std::iota(axes.reduced.begin(), axes.reduced.end(), 0);
    }
    const bool keep = call.integer("keepdims", 1) != 0;
    Ints sizes;
    std::size_t next = 0;
    for (int i = 0; i < rank; ++i) {
        const bool is_reduced = next < axes.reduced.size() && axes.reduced[next] == i;
        if (is_reduced) ++next;
        if (!is_reduced || keep) sizes.push_back(is_reduced ? 1 : call.shape(0)[i]);
    }
    axes.output = Shape(sizes);
    return axes;
}

std::string brackets(const Ints& axes) {
    std::vector<std::string> names;
    for (const std::int64_t axis : axes) names.push_back(cat(axis));
    return cat("[", join(names, ","), "]");
}

/// `code` holds @ for the axes; `alone` is what becomes of each element where nothing is reduced.
struct Kind {
    std::string_view type;
    std::int64_t input_since;  ///< the opset from which on axes are an input
    std::string_view code, behind, alone;
};

void reduce(Call& call, const Kind& kind, bool by_input) {
    const Axes axes = read_axes(call, by_input);
    const DType dtype = call.dtype(0);
    Ref value = call.in(0);
    if (axes.reduced.empty()) {
        if (!kind.alone.empty()) value = call.build.pointwise(kind.alone, {value}, dtype);
        return call.set(0, value);
    }
    if ((kind.type == "ReduceMean" || kind.type == "ReduceSum") && is_float(call.dtype(0))) {
        value =
            call.build.add1("Reduction", {value},
                            {{"method", std::string(kind.type == "ReduceMean" ? "mean" : "sum")},
                             {"dims", axes.reduced},
                             {"keep_dim", true}});
    } else if (kind.type == "ReduceLogSumExp") {
        const std::string over = brackets(axes.reduced);
        const Ref top = call.build.pointwise(cat("y0 = max", over, "(x0)"), {value});
        // Infinity minus infinity would be NaN.
        const std::string offset = "isinf(x1) ? 0 : x1";
        const Ref sum = call.build.pointwise(
            cat("t = ", offset, "; y0 = sum", over, "(exp(x0 - t))"), {value, top});
        value = call.build.pointwise(cat("t = ", offset, "; y0 = t + log(x0)"), {sum, top});
    } else {
        std::string code(kind.code);
        // The largest of no truth values is false, as their sum is.
        if (kind.type == "ReduceMax" && call.dtype(0) == DType::boolean) code = "y0 = sum@(x0)";
        code.replace(code.find('@'), 1, brackets(axes.reduced));
        value = call.build.pointwise(code, {value}, dtype);
        if (!kind.behind.empty()) value = call.build.pointwise(kind.behind, {value}, dtype);
    }
    call.set(0, call.build.reshape(value, axes.output));
}

const Kind kinds[] = {
    {"ReduceSum", 13, "y0 = sum@(x0)", "", ""},
    {"ReduceMean", 18, "y0 = mean@(x0)", "", ""},
    {"ReduceMax", 18, "y0 = max@(x0)", "", ""},
    {"ReduceMin", 18, "y0 = min@(x0)", "", ""},
    {"ReduceProd", 18, "y0 = prod@(x0)", "", ""},
    {"ReduceL1", 18, "y0 = sum@(abs(x0))", "", "y0 = abs(x0)"},
    {"ReduceL2", 18, "y0 = sum@(x0 * x0)", "y0 = sqrt(x0)", "y0 = abs(x0)"},
    {"ReduceSumSquare", 18, "y0 = sum@(x0 * x0)", "", "y0 = x0 * x0"},
    {"ReduceLogSum", 18, "y0 = sum@(x0)", "y0 = log(x0)", "y0 = log(x0)"},
    {"ReduceLogSumExp", 18, "", "", "y0 = x0"},
};

}  // namespace

std::vector<Rule> reduction_rules() {
    std::vector<Rule> rules;
    for (const Kind& kind : kinds)
        for (const bool by_input : {false, true})
            rules.push_back({kind.type, by_input ? kind.input_since : 1,
                             [&kind, by_input](Call& call) { reduce(call, kind, by_input); }});
    return rules;
}

}  // namespace dlprim::onnx

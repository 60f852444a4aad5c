// SPDX-License-Identifier: MIT
// The sum of the gradients that flowed back into a value; see gradient_pieces.hpp.
#include "graph/passes/gradient_pieces.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <tuple>

namespace dlprim {

std::int64_t GradientPieces::end(const Graph& graph, const Piece& piece) {
    return piece.part.begin + graph.shape(piece.gradient)[piece.part.dim];
}

std::vector<GradientPieces::Run> GradientPieces::runs(const Graph& graph) const {
    Run parts;
    for (const Piece& piece : pieces_)
        if (piece.part.dim != GradientPart::whole) parts.push_back(piece);
    std::stable_sort(parts.begin(), parts.end(), [](const Piece& a, const Piece& b) {
        return std::tie(a.part.dim, a.part.begin) < std::tie(b.part.dim, b.part.begin);
    });
    std::vector<Run> result;
    for (const Piece& piece : parts) {
        const auto open = std::find_if(result.begin(), result.end(), [&](const Run& run) {
            return run.back().part.dim == piece.part.dim &&
                   end(graph, run.back()) == piece.part.begin;
        });
        if (open != result.end())
            open->push_back(piece);
        else
            result.push_back({piece});
    }
    return result;
}

ValueId GradientPieces::join(Graph& graph, const Run& run, ValueId value,
                             const std::string& number) {
    const int dim = run.front().part.dim;
    const Shape whole = graph.shape(value);
    ValueId joined = run.front().gradient;
    if (run.size() > 1) {
        std::vector<ValueId> gradients;
        for (const Piece& piece : run) gradients.push_back(piece.gradient);
        joined = graph.add1("Concat", cat(graph.value(value).name, "/gradient_join", number),
                            gradients, {{"dim", std::int64_t{dim}}});
    }
    const std::int64_t begin = run.front().part.begin, last = end(graph, run.back());
    if (begin == 0 && last == whole[dim]) return joined;
    Ints pads(static_cast<std::size_t>(2 * (whole.rank() - dim)), 0);
    pads[pads.size() - 2] = begin;
    pads[pads.size() - 1] = whole[dim] - last;
    return graph.add1("Pad", cat(graph.value(value).name, "/gradient_pad", number), {joined},
                      {{"pads", pads}});
}

ValueId GradientPieces::sum(Graph& graph, ValueId value) {
    std::vector<ValueId> terms;
    for (const Piece& piece : pieces_)
        if (piece.part.dim == GradientPart::whole) terms.push_back(piece.gradient);
    const std::vector<Run> joined = runs(graph);
    for (std::size_t i = 0; i < joined.size(); ++i)
        terms.push_back(
            join(graph, joined[i], value, joined.size() > 1 ? cat(".", i) : std::string()));
    if (terms.size() > 1) {
        std::string code = "y0 = x0";
        for (std::size_t i = 1; i < terms.size(); ++i) code += cat(" + x", i);
        terms = {graph.pointwise1(graph.value(value).name + "/gradient_sum", code, terms)};
    }
    pieces_ = {{terms.front(), GradientPart{}}};
    return terms.front();
}

}  // namespace dlprim

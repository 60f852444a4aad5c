// SPDX-License-Identifier: MIT
// Gather's oracles: for each element of the result, the coordinates in data that it is read from.
#include "ops/gather/oracle.hpp"

#include "base/text.hpp"

namespace dlprim::gather {

namespace {

std::size_t flat(const Shape& shape, const Ints& at) {
    std::int64_t place = 0;
    for (int i = 0; i < shape.rank(); ++i)
        place = place * shape[i] + at[static_cast<std::size_t>(i)];
    return static_cast<std::size_t>(place);
}

/// Steps to the next coordinates in row-major order; false behind the last.
bool next(const Shape& shape, Ints& at) {
    for (int i = shape.rank() - 1; i >= 0; --i) {
        if (++at[static_cast<std::size_t>(i)] < shape[i]) return true;
        at[static_cast<std::size_t>(i)] = 0;
    }
    return false;
}

struct Definition {
    std::string mode;
    int dim = 0, batch = 0;
    Shape data, result;
    const HostArray& indices;

    Definition(const Attrs& attrs, const Shape& from, const HostArray& given)
        : mode(attrs.text("mode")),
          batch(static_cast<int>(attrs.integer("batch_dims"))),
          data(from),
          indices(given) {
        const std::int64_t d = attrs.integer("dim");
        dim = static_cast<int>(d < 0 ? d + data.rank() : d);
        const Ints x = data.to_vector(), i = given.shape.to_vector();
        if (mode == "elements") {
            result = given.shape;
        } else if (mode == "rows") {
            Ints sizes(x.begin(), x.begin() + dim);
            sizes.insert(sizes.end(), i.begin(), i.end());
            sizes.insert(sizes.end(), x.begin() + dim + 1, x.end());
            result = Shape(sizes);
        } else {
            Ints sizes(i.begin(), i.end() - 1);
            sizes.insert(sizes.end(), x.begin() + batch + i.back(), x.end());
            result = Shape(sizes);
        }
    }

    std::int64_t index(const Ints& at, int dimension) const {
        const auto value = static_cast<std::int64_t>(indices.data[flat(indices.shape, at)]);
        require(value >= -data[dimension] && value < data[dimension], "index ", value,
                " is outside of dimension ", dimension, " of data ", data.str());
        return value < 0 ? value + data[dimension] : value;
    }

    /// Where the result's element comes from.
    Ints source(const Ints& at) const {
        if (mode == "elements") {
            Ints from = at;
            from[static_cast<std::size_t>(dim)] = index(at, dim);
            return from;
        }
        const auto rank = static_cast<std::ptrdiff_t>(indices.shape.rank());
        if (mode == "rows") {
            const auto front = at.begin() + dim;
            Ints from(at.begin(), front);
            from.push_back(index(Ints(front, front + rank), dim));
            from.insert(from.end(), front + rank, at.end());
            return from;
        }
        Ints tuple(at.begin(), at.begin() + rank - 1);
        Ints from(at.begin(), at.begin() + batch);
        tuple.push_back(0);
        for (std::int64_t k = 0; k < indices.shape[-1]; ++k) {
            tuple.back() = k;
            from.push_back(index(tuple, batch + static_cast<int>(k)));
        }
        from.insert(from.end(), at.begin() + rank - 1, at.end());
        return from;
    }

    /// f(place in data, place in the result) for all elements of the result.
    template <typename F>
    void each(F&& f) const {
        if (result.empty()) return;
        Ints at(static_cast<std::size_t>(result.rank()), 0);
        do f(flat(data, source(at)), flat(result, at));
        while (next(result, at));
    }
};

}  // namespace

void oracle(OracleCall& call) {
    const HostArray& x = call.inputs[0];
    const Definition definition(call.attrs, x.shape, call.inputs[1]);
    HostArray& y = call.outputs[0];
    y = {definition.result,
         std::vector<double>(static_cast<std::size_t>(definition.result.numel())), x.dtype};
    definition.each([&](std::size_t from, std::size_t to) { y.data[to] = x.data[from]; });
}

void oracle_backward(OracleBackwardCall& call) {
    const HostArray& dy = call.output_gradients[0];
    HostArray& dx = call.input_gradients[0];
    dx = call.inputs[0];
    dx.data.assign(dx.data.size(), 0.0);
    call.input_gradients[1] = {call.inputs[1].shape, {}, call.inputs[1].dtype};
    Definition(call.attrs, dx.shape, call.inputs[1]).each([&](std::size_t from, std::size_t to) {
        dx.data[from] += dy.data[to];
    });
}

}  // namespace dlprim::gather

// SPDX-License-Identifier: MIT
// Scatter's oracles: for each element of the updates in order, the coordinates in data that it
// changes.
#include "ops/scatter/oracle.hpp"

#include "base/text.hpp"

#include <cmath>
#include <limits>

namespace dlprim::scatter {

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
    int dim, batch;
    const Shape &data, &updates;
    const HostArray& indices;

    Definition(const Attrs& attrs, const Shape& to, const HostArray& given, const Shape& from)
        : mode(attrs.text("mode")),
          dim(static_cast<int>(attrs.integer("dim"))),
          batch(static_cast<int>(attrs.integer("batch_dims"))),
          data(to),
          updates(from),
          indices(given) {
        if (dim < 0) dim += data.rank();
    }

    std::int64_t index(const Ints& at, int dimension) const {
        const auto value = static_cast<std::int64_t>(indices.data[flat(indices.shape, at)]);
        require(value >= -data[dimension] && value < data[dimension], "index ", value,
                " is outside of dimension ", dimension, " of data ", data.str());
        return value < 0 ? value + data[dimension] : value;
    }

    /// What the update at these coordinates changes.
    Ints target(const Ints& at) const {
        const auto rank = static_cast<std::ptrdiff_t>(indices.shape.rank());
        Ints to;
        if (mode == "elements") {
            to = at;
            to[static_cast<std::size_t>(dim)] = index(at, dim);
        } else if (mode == "rows") {
            const auto front = at.begin() + dim;
            to.assign(at.begin(), front);
            to.push_back(index(Ints(front, front + rank), dim));
            to.insert(to.end(), front + rank, at.end());
        } else {
            Ints tuple(at.begin(), at.begin() + rank);
            to.assign(at.begin(), at.begin() + batch);
            for (std::int64_t k = 0; k < indices.shape[-1]; ++k) {
                tuple.back() = k;
                to.push_back(index(tuple, batch + static_cast<int>(k)));
            }
            to.insert(to.end(), at.begin() + rank - 1, at.end());
        }
        return to;
    }

    /// f(place in data, place in the updates), in the order of the updates.
    template <typename F>
    void each(F&& f) const {
        if (updates.empty()) return;
        Ints at(static_cast<std::size_t>(updates.rank()), 0);
        // A tuple's last place is overwritten in target(), where the updates may have none.
        do {
            Ints longer = at;
            longer.resize(std::max(at.size(), static_cast<std::size_t>(indices.shape.rank())), 0);
            Ints to = target(longer);
            to.resize(static_cast<std::size_t>(data.rank()));
            f(flat(data, to), flat(updates, at));
        } while (next(updates, at));
    }
};

double combined(const std::string& how, double a, double b) {
    if (how == "none") return b;
    if (how == "add") return a + b;
    if (how == "mul") return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    return how == "max" ? std::fmax(a, b) : std::fmin(a, b);
}

}  // namespace

void oracle(OracleCall& call) {
    const bool has_data = call.inputs.size() == 3;
    const HostArray& updates = call.inputs.back();
    HostArray& y = call.outputs[0];
    y = has_data ? call.inputs[0] : HostArray{Shape(call.attrs.ints("shape")), {}, updates.dtype};
    y.data.resize(static_cast<std::size_t>(y.shape.numel()), 0);
    const std::string& how = call.attrs.text("reduction");
    Definition(call.attrs, y.shape, call.inputs[call.inputs.size() - 2], updates.shape)
        .each([&](std::size_t to, std::size_t from) {
            y.data[to] = combined(how, y.data[to], updates.data[from]);
        });
}

void oracle_backward(OracleBackwardCall& call) {
    const std::size_t updates = call.inputs.size() - 1;
    const HostArray& dy = call.output_gradients[0];
    const bool adds = call.attrs.text("reduction") == "add";
    call.input_gradients[updates - 1] = {
        call.inputs[updates - 1].shape, {}, call.inputs[updates - 1].dtype};
    HostArray& from_updates = call.input_gradients[updates];
    from_updates = call.inputs[updates];
    from_updates.data.assign(from_updates.data.size(), 0);
    HostArray left = dy;  // of data
    left.dtype = call.inputs[updates].dtype;
    const Definition definition(call.attrs, dy.shape, call.inputs[updates - 1], from_updates.shape);
    constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> last(dy.data.size(), nobody);
    definition.each([&](std::size_t to, std::size_t from) {
        if (!adds && last[to] != nobody) from_updates.data[last[to]] = 0;
        from_updates.data[from] = dy.data[to];
        last[to] = from;
        if (!adds) left.data[to] = 0;
    });
    if (updates == 2) call.input_gradients[0] = left;
}

}  // namespace dlprim::scatter

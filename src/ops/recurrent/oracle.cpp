// SPDX-License-Identifier: MIT
// LSTM and GRU as plain loops in double, and a hand-written backpropagation through time. Dropout
// factors come from the Dropout operator.
#include "ops/recurrent/recurrent.hpp"

#include <cmath>

namespace dlprim::recurrent {

namespace {

using Doubles = std::vector<double>;

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}

/// One layer and direction: sizes, parameters, and what the backward pass needs of every step (in
/// the order of computation).
struct Run {
    bool lstm;
    std::size_t steps, batch, in, hidden;
    bool reverse;
    const double *w_ih, *w_hh, *b_ih, *b_hh;  // biases may be null
    Doubles x;                                // [T, N, in]
    Doubles h, c;       // [T + 1, N, hidden]: before each step, and after the last
    Doubles gate;       // [T, N, gates, hidden], after the activation functions
    Doubles candidate;  // GRU: the hidden product of n, [T, N, hidden]

    std::size_t gates() const { return lstm ? 4 : 3; }
    std::size_t time(std::size_t i) const { return reverse ? steps - 1 - i : i; }
    double& g(std::size_t i, std::size_t n, std::size_t k, std::size_t j) {
        return gate[((i * batch + n) * gates() + k) * hidden + j];
    }
    std::size_t at(std::size_t i, std::size_t n, std::size_t j) const {
        return (i * batch + n) * hidden + j;
    }

    void forward(const Doubles& h0, const Doubles& c0) {
        h.assign((steps + 1) * batch * hidden, 0);
        c = h;
        gate.assign(steps * batch * gates() * hidden, 0);
        candidate.assign(steps * batch * hidden, 0);
        std::copy(h0.begin(), h0.end(), h.begin());
        std::copy(c0.begin(), c0.end(), c.begin());
        for (std::size_t i = 0; i < steps; ++i)
            for (std::size_t n = 0; n < batch; ++n)
                for (std::size_t j = 0; j < hidden; ++j) {
                    double from_x[4], from_h[4];
                    for (std::size_t k = 0; k < gates(); ++k) {
                        const std::size_t row = k * hidden + j;
                        from_x[k] = b_ih ? b_ih[row] : 0;
                        from_h[k] = b_hh ? b_hh[row] : 0;
                        for (std::size_t p = 0; p < in; ++p)
                            from_x[k] += x[(time(i) * batch + n) * in + p] * w_ih[row * in + p];
                        for (std::size_t p = 0; p < hidden; ++p)
                            from_h[k] += h[at(i, n, p)] * w_hh[row * hidden + p];
                    }
                    if (lstm) {
                        const double in_gate = g(i, n, 0, j) = sigmoid(from_x[0] + from_h[0]);
                        const double forget = g(i, n, 1, j) = sigmoid(from_x[1] + from_h[1]);
                        const double cell = g(i, n, 2, j) = std::tanh(from_x[2] + from_h[2]);
                        const double out = g(i, n, 3, j) = sigmoid(from_x[3] + from_h[3]);
                        c[at(i + 1, n, j)] = forget * c[at(i, n, j)] + in_gate * cell;
                        h[at(i + 1, n, j)] = out * std::tanh(c[at(i + 1, n, j)]);
                    } else {
                        const double r = g(i, n, 0, j) = sigmoid(from_x[0] + from_h[0]);
                        const double z = g(i, n, 1, j) = sigmoid(from_x[1] + from_h[1]);
                        candidate[at(i, n, j)] = from_h[2];
                        const double fresh = g(i, n, 2, j) = std::tanh(from_x[2] + r * from_h[2]);
                        h[at(i + 1, n, j)] = (1 - z) * fresh + z * h[at(i, n, j)];
                    }
                }
    }

    /// Gradients of the parameters, which backward() adds to; nullptr where there are no biases.
    struct Gradients {
        double *w_ih, *w_hh, *b_ih, *b_hh;
    };

    /// dy is [T, N, hidden] in the order of time. dh and dc are the gradients of the final states
    /// and become those of the initial states. With `sizes`, every term is replaced by its absolute
    /// value, so the results are the sums of absolute values.
    void backward(const Doubles& dy, Doubles& dh, Doubles& dc, Doubles& dx, const Gradients& to,
                  bool sizes) {
        const auto m = [sizes](double v) { return sizes ? std::abs(v) : v; };
        // 1 - v is a difference too, and is small for a saturated gate.
        const auto rest = [sizes](double v) { return sizes ? 1 : 1 - v; };
        dx.assign(x.size(), 0);
        for (std::size_t i = steps; i-- > 0;) {
            Doubles dh_before(batch * hidden, 0);
            for (std::size_t n = 0; n < batch; ++n)
                for (std::size_t j = 0; j < hidden; ++j) {
                    const std::size_t own = n * hidden + j;
                    const double d = dh[own] + m(dy[at(time(i), n, j)]);
                    double via_x[4], via_h[4];
                    if (lstm) {
                        const double in_gate = g(i, n, 0, j), forget = g(i, n, 1, j),
                                     cell = g(i, n, 2, j), out = g(i, n, 3, j);
                        const double bent = std::tanh(c[at(i + 1, n, j)]);
                        const double d_cell = dc[own] + d * out * rest(bent * bent);
                        via_x[0] = d_cell * m(cell) * in_gate * rest(in_gate);
                        via_x[1] = d_cell * m(c[at(i, n, j)]) * forget * rest(forget);
                        via_x[2] = d_cell * in_gate * rest(cell * cell);
                        via_x[3] = d * m(bent) * out * rest(out);
                        for (int k = 0; k < 4; ++k) via_h[k] = via_x[k];
                        dc[own] = d_cell * forget;
                    } else {
                        const double r = g(i, n, 0, j), z = g(i, n, 1, j), fresh = g(i, n, 2, j);
                        const double d_fresh = d * rest(z) * rest(fresh * fresh);
                        via_x[0] = via_h[0] = d_fresh * m(candidate[at(i, n, j)]) * r * rest(r);
                        const double change = sizes ? std::abs(h[at(i, n, j)]) + std::abs(fresh)
                                                    : h[at(i, n, j)] - fresh;
                        via_x[1] = via_h[1] = d * change * z * rest(z);
                        via_x[2] = d_fresh;
                        via_h[2] = d_fresh * r;
                        dh_before[own] += d * z;
                    }
                    for (std::size_t k = 0; k < gates(); ++k) {
                        const std::size_t row = k * hidden + j;
                        if (to.b_ih) to.b_ih[row] += via_x[k], to.b_hh[row] += via_h[k];
                        for (std::size_t p = 0; p < in; ++p) {
                            const std::size_t from = (time(i) * batch + n) * in + p;
                            to.w_ih[row * in + p] += via_x[k] * m(x[from]);
                            dx[from] += via_x[k] * m(w_ih[row * in + p]);
                        }
                        for (std::size_t p = 0; p < hidden; ++p) {
                            to.w_hh[row * hidden + p] += via_h[k] * m(h[at(i, n, p)]);
                            dh_before[n * hidden + p] += via_h[k] * m(w_hh[row * hidden + p]);
                        }
                    }
                }
            dh = dh_before;
        }
    }
};

/// [A, B, C] -> [B, A, C]
Doubles swapped(const Doubles& x, std::size_t a, std::size_t b) {
    if (a * b == 0) return x;
    const std::size_t c = x.size() / (a * b);
    Doubles y(x.size());
    for (std::size_t i = 0; i < a; ++i)
        for (std::size_t j = 0; j < b; ++j)
            for (std::size_t k = 0; k < c; ++k) y[(j * a + i) * c + k] = x[(i * b + j) * c + k];
    return y;
}

/// All layers and directions of a network, in order.
struct Network {
    Options options;
    bool lstm;
    std::size_t tensors, steps, batch, hidden, directions;
    std::vector<Run> runs;
    std::vector<Doubles> factors;  // of dropout, per layer except the last; empty if there is none
    Doubles y;                     // [T, N, directions * hidden]

    template <typename Call>
    Network(const Call& call, bool is_lstm)
        : options(Options::read(call.attrs)),
          lstm(is_lstm),
          tensors(tensors_among(options, call.inputs.size())) {
        const std::vector<HostArray>& inputs = call.inputs;
        const Shape& shape = inputs[0].shape;
        steps = static_cast<std::size_t>(shape[options.batch_first ? 1 : 0]);
        batch = static_cast<std::size_t>(shape[options.batch_first ? 0 : 1]);
        hidden = static_cast<std::size_t>(options.hidden_size);
        directions = static_cast<std::size_t>(options.directions());
        Doubles x = options.batch_first ? swapped(inputs[0].data, batch, steps) : inputs[0].data;
        std::size_t in = static_cast<std::size_t>(shape[2]);
        for (std::size_t layer = 0; layer < static_cast<std::size_t>(options.num_layers); ++layer) {
            y.assign(steps * batch * directions * hidden, 0);
            for (std::size_t d = 0; d < directions; ++d) {
                const std::size_t number = layer * directions + d,
                                  first = tensors + number * options.params_a_run();
                const double* no_bias = nullptr;
                Run run{lstm,
                        steps,
                        batch,
                        in,
                        hidden,
                        d == 1,
                        inputs[first].data.data(),
                        inputs[first + 1].data.data(),
                        options.bias ? inputs[first + 2].data.data() : no_bias,
                        options.bias ? inputs[first + 3].data.data() : no_bias,
                        x,
                        {},
                        {},
                        {},
                        {}};
                run.forward(initial(inputs, 1, number),
                            lstm ? initial(inputs, 2, number) : Doubles{});
                for (std::size_t i = 0; i < steps; ++i)
                    for (std::size_t n = 0; n < batch; ++n)
                        for (std::size_t j = 0; j < hidden; ++j)
                            y[((run.time(i) * batch + n) * directions + d) * hidden + j] =
                                run.h[run.at(i + 1, n, j)];
                runs.push_back(std::move(run));
            }
            x = y;
            in = directions * hidden;
            if (call.training && options.dropout > 0 &&
                layer + 1 < static_cast<std::size_t>(options.num_layers)) {
                factors.push_back(dropout(call, layer));
                for (std::size_t i = 0; i < x.size(); ++i) x[i] *= factors.back()[i];
            }
        }
    }
    /// The dropout factors: the result of Dropout for an input of ones.
    template <typename Call>
    Doubles dropout(const Call& call, std::size_t layer) const {
        const Operator& op = OperatorRegistry::instance().get("Dropout");
        const Attrs attrs = op.schema().complete(
            options.dropout_behind(static_cast<std::int64_t>(layer)), "Dropout");
        OracleCall inner{attrs, true, {}, {}, {}, call.seed, call.step};
        const Shape shape{static_cast<std::int64_t>(steps), static_cast<std::int64_t>(batch),
                          static_cast<std::int64_t>(directions * hidden)};
        inner.inputs.push_back({shape, Doubles(y.size(), 1.0)});
        inner.outputs.resize(1);
        op.oracle(inner);
        return inner.outputs[0].data;
    }
    Doubles initial(const std::vector<HostArray>& inputs, std::size_t input,
                    std::size_t number) const {
        const std::size_t size = batch * hidden;
        if (tensors <= input) return Doubles(size, 0);
        const auto begin = inputs[input].data.begin() + static_cast<std::ptrdiff_t>(number * size);
        return Doubles(begin, begin + static_cast<std::ptrdiff_t>(size));
    }
};

}  // namespace

void Recurrent::oracle(OracleCall& call) const {
    std::vector<TensorSpec> specs;
    for (const HostArray& input : call.inputs) specs.push_back({input.shape, DType::f32});
    const std::vector<TensorSpec> made = infer(call.attrs, specs);
    call.outputs.resize(made.size());
    for (std::size_t i = 0; i < made.size(); ++i) call.outputs[i].shape = made[i].shape;
    const Network net(call, states() == 2);
    call.outputs[0].data = net.options.batch_first ? swapped(net.y, net.steps, net.batch) : net.y;
    for (std::size_t s = 1; s < made.size(); ++s) {
        Doubles& data = call.outputs[s].data;
        data.clear();
        for (const Run& run : net.runs) {
            const Doubles& all = s == 1 ? run.h : run.c;
            data.insert(data.end(), all.end() - static_cast<std::ptrdiff_t>(net.batch * net.hidden),
                        all.end());
        }
    }
}

namespace {

/// The gradients of all inputs, or with `sizes` the sums of the absolute values of their terms.
void backward(const OracleBackwardCall& call, bool lstm, bool sizes,
              std::vector<HostArray>& gradients) {
    Network net(call, lstm);
    gradients.resize(call.inputs.size());
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        gradients[i].shape = call.inputs[i].shape;
        gradients[i].data.assign(call.inputs[i].data.size(), 0);
    }
    const std::size_t size = net.batch * net.hidden;
    Doubles dy = call.output_gradients[0].data;
    if (net.options.batch_first) dy = swapped(dy, net.batch, net.steps);
    for (std::size_t layer = static_cast<std::size_t>(net.options.num_layers); layer-- > 0;) {
        Doubles below;
        for (std::size_t d = 0; d < net.directions; ++d) {
            const std::size_t number = layer * net.directions + d;
            Run& run = net.runs[number];
            Doubles own(net.steps * size);
            for (std::size_t row = 0; row < net.steps * net.batch; ++row)
                for (std::size_t j = 0; j < net.hidden; ++j)
                    own[row * net.hidden + j] = dy[(row * net.directions + d) * net.hidden + j];
            const auto part = [&](std::size_t output) {
                if (output >= call.output_gradients.size() ||
                    call.output_gradients[output].data.empty())
                    return Doubles(size, 0);
                const auto begin = call.output_gradients[output].data.begin() +
                                   static_cast<std::ptrdiff_t>(number * size);
                Doubles given(begin, begin + static_cast<std::ptrdiff_t>(size));
                if (sizes)
                    for (double& v : given) v = std::abs(v);
                return given;
            };
            Doubles dh = part(1), dc = net.lstm ? part(2) : Doubles(size, 0), dx;
            const std::size_t first = net.tensors + number * net.options.params_a_run();
            const auto gradient = [&](std::size_t i) { return gradients[first + i].data.data(); };
            const bool bias = net.options.bias;
            run.backward(own, dh, dc, dx,
                         {gradient(0), gradient(1), bias ? gradient(2) : nullptr,
                          bias ? gradient(3) : nullptr},
                         sizes);
            if (net.tensors > 1)
                std::copy(dh.begin(), dh.end(),
                          gradients[1].data.begin() + static_cast<std::ptrdiff_t>(number * size));
            if (net.tensors > 2)
                std::copy(dc.begin(), dc.end(),
                          gradients[2].data.begin() + static_cast<std::ptrdiff_t>(number * size));
            if (below.empty()) below.assign(dx.size(), 0);
            for (std::size_t i = 0; i < dx.size(); ++i) below[i] += dx[i];
        }
        dy = below;
        if (layer > 0 && !net.factors.empty())
            for (std::size_t i = 0; i < dy.size(); ++i) dy[i] *= net.factors[layer - 1][i];
    }
    gradients[0].data = net.options.batch_first ? swapped(dy, net.steps, net.batch) : dy;
}

}  // namespace

void Recurrent::oracle_backward(OracleBackwardCall& call) const {
    backward(call, states() == 2, false, call.input_gradients);
    backward(call, states() == 2, true, call.terms);
}

}  // namespace dlprim::recurrent

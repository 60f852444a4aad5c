// SPDX-License-Identifier: MIT
// Compares 20 steps of SGD, Adam and AdamW with PyTorch's definitions in double, on a network whose
// gradient is written by hand.
#include "net/support.hpp"
#include "net/two_layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// PyTorch's torch.optim.SGD, Adam and AdamW, clip_grad_norm_ and clip_grad_value_.
class Reference {
  public:
    Reference(const SolverOptions& options, TwoLayers::Params start)
        : o_(options), p_(std::move(start)) {
        for (const auto& param : p_) {
            first_.emplace_back(param.size(), 0.0);
            second_.emplace_back(param.size(), 0.0);
        }
    }

    const TwoLayers::Params& params() const { return p_; }

    void step(TwoLayers::Params g, double rate) {
        ++t_;
        double norm = 0;
        for (const auto& part : g)
            for (const double v : part) norm += v * v;
        const double factor =
            o_.clip_norm > 0 ? std::min(1.0, o_.clip_norm / (std::sqrt(norm) + 1e-6)) : 1;
        for (std::size_t k = 0; k < p_.size(); ++k) {
            for (std::size_t i = 0; i < p_[k].size(); ++i) {
                double d = g[k][i] * factor;
                if (o_.clip_value > 0) d = std::clamp(d, -o_.clip_value, o_.clip_value);
                update(p_[k][i], first_[k][i], second_[k][i], d, rate);
            }
        }
    }

  private:
    void update(double& p, double& m, double& v, double d, double rate) const {
        if (o_.kind == SolverOptions::Kind::adamw)
            p -= rate * o_.weight_decay * p;
        else
            d += o_.weight_decay * p;
        if (o_.kind == SolverOptions::Kind::sgd) {
            m = o_.momentum * m + d;
            p -= rate * (o_.nesterov ? d + o_.momentum * m : m);
            return;
        }
        m = o_.beta1 * m + (1 - o_.beta1) * d;
        v = o_.beta2 * v + (1 - o_.beta2) * d * d;
        p -= rate / (1 - std::pow(o_.beta1, t_)) * m /
             (std::sqrt(v) / std::sqrt(1 - std::pow(o_.beta2, t_)) + o_.epsilon);
    }

    SolverOptions o_;
    TwoLayers::Params p_, first_, second_;
    int t_ = 0;
};

constexpr std::size_t batch_rows = 6;

std::vector<float> data_of(int step) {
    return random_floats(batch_rows * TwoLayers::inputs, static_cast<unsigned>(10 + step));
}
std::vector<float> target_of(int step) {
    return random_floats(batch_rows * TwoLayers::outputs, static_cast<unsigned>(1000 + step), 1, 3);
}

struct Named {
    const char* name;
    SolverOptions options;
};

std::vector<Named> solvers() {
    SolverOptions sgd;
    sgd.kind = SolverOptions::Kind::sgd;
    sgd.learning_rate = 0.05;
    SolverOptions decay = sgd, momentum = sgd;
    decay.weight_decay = 0.1;
    momentum.momentum = 0.9;
    momentum.learning_rate = 0.02;
    SolverOptions nesterov = momentum, all = momentum;
    nesterov.nesterov = true;
    all.nesterov = true;
    all.weight_decay = 0.05;
    SolverOptions norm = momentum, value = momentum;
    norm.clip_norm = 0.3;
    norm.weight_decay = 0.01;
    value.clip_value = 0.05;
    SolverOptions adam{.learning_rate = 0.01};
    SolverOptions adam_decay = adam, adam_betas = adam, adamw = adam, adamw_clip;
    adam_decay.weight_decay = 0.1;
    adam_betas.beta1 = 0.8;
    adam_betas.beta2 = 0.9;
    adam_betas.epsilon = 1e-3;
    adamw.kind = SolverOptions::Kind::adamw;
    adamw.weight_decay = 0.1;
    adamw_clip = adamw;
    adamw_clip.clip_norm = 0.5;
    return {{"SGD", sgd},
            {"SGD with weight decay", decay},
            {"SGD with momentum", momentum},
            {"SGD after Nesterov", nesterov},
            {"SGD after Nesterov with weight decay", all},
            {"SGD clipped by norm", norm},
            {"SGD clipped by value", value},
            {"Adam", adam},
            {"Adam with weight decay", adam_decay},
            {"Adam with other constants", adam_betas},
            {"AdamW", adamw},
            {"AdamW clipped by norm", adamw_clip}};
}

/// Fills memory with NaN and releases it, so that later allocations are not zero by chance.
void soil_memory(const Context& device) {
    std::vector<Tensor> dirt;
    for (int i = 0; i < 200; ++i) {
        dirt.emplace_back(device, Shape{64 + 32 * (i % 16)});
        dirt.back().fill(std::numeric_limits<double>::quiet_NaN());
    }
}

}  // namespace

TEST_CASE("20 steps of each solver are those of its definition", "[solvers]") {
    ON_EVERY_DEVICE(device) {
        for (const Named& solver : solvers()) {
            INFO(solver.name);
            soil_memory(device);
            Net net = make_net(device, TwoLayers::json(batch_rows), training());
            Solver steps(net, solver.options);
            TwoLayers::Params start;
            for (std::size_t k = 0; k < 4; ++k) {
                const std::size_t count =
                    static_cast<std::size_t>(net.param_shape(TwoLayers::names[k]).numel());
                const std::vector<float> values =
                    random_floats(count, static_cast<unsigned>(k + 1));
                net.param(TwoLayers::names[k]).copy_from(values);
                start.emplace_back(values.begin(), values.end());
            }
            net.params_changed();
            Reference reference(solver.options, start);
            for (int step = 0; step < 20; ++step) {
                const double rate = solver.options.learning_rate * (step < 10 ? 1 : 0.5);
                steps.set_learning_rate(rate);
                set_floats(net, "data", data_of(step));
                set_floats(net, "target", target_of(step));
                steps.step();
                reference.step(
                    TwoLayers::gradient(reference.params(), data_of(step), target_of(step)), rate);
            }
            CHECK(steps.steps() == 20);
            for (std::size_t k = 0; k < 4; ++k) {
                INFO("parameter " << TwoLayers::names[k]);
                check_close(net.param(TwoLayers::names[k]).to_floats(), reference.params()[k],
                            1e-5);
            }
        }
    }
}

TEST_CASE("an update is one launch, whatever the number of parameters", "[solvers]") {
    ON_EVERY_DEVICE(device) {
        for (const Named& solver : solvers()) {
            INFO(solver.name);
            Net net = make_net(device, small_network, training());
            const Solver steps(net, solver.options);
            int updates = 0;
            for (const NodeReport& node : net.nodes()) updates += node.part == "update";
            // With gradient clipping, squares of pieces, their sum and the factor come first.
            CHECK(updates <= (solver.options.clip_norm > 0 ? 4 : 1));
            CHECK(updates >= 1);
        }
    }
}

TEST_CASE("a second solver on a net starts without the first one's state", "[solvers]") {
    ON_EVERY_DEVICE(device) {
        SolverOptions momentum{
            .kind = SolverOptions::Kind::sgd, .learning_rate = 0.1, .momentum = 0.9};
        const auto one_step = [&](Net& net) {
            Solver solver(net, momentum);
            set_floats(net, "data", data_of(1));
            set_floats(net, "target", target_of(1));
            solver.step();
        };
        Net fresh = make_net(device, TwoLayers::json(batch_rows), training());
        Net used = make_net(device, TwoLayers::json(batch_rows), training());
        one_step(used);
        fresh.initialize();
        used.initialize();
        one_step(fresh);
        one_step(used);
        CHECK((all_bits(fresh) == all_bits(used)));
    }
}

TEST_CASE("gradients are clipped at the value given, all its digits", "[solvers]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, TwoLayers::json(batch_rows), training());
        net.param("second.1").fill(0);
        SolverOptions options{.kind = SolverOptions::Kind::sgd,
                              .learning_rate = 1,
                              .momentum = 0,
                              .clip_value = 0.12345678};
        Solver solver(net, options);
        set_floats(net, "data", data_of(0));
        set_floats(net, "target", std::vector<float>(batch_rows * TwoLayers::outputs, 1000));
        solver.step();
        for (const float bias : net.param("second.1").to_floats())
            CHECK(bias == static_cast<float>(options.clip_value));
    }
}

// SPDX-License-Identifier: MIT
// The updates of optimizers with fused=True: a launch or two for all parameters.
//
// Adam: D. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", 2015. AdamW: I.
// Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", 2019. Adagrad: J. Duchi et
// al., 2011.
#include "ops/call.hpp"
#include "ops/many.hpp"

#include <cmath>
#include <string>

namespace dlprim_torch {
namespace {

/// Builds a program from its operands: each add() names a list xN or a number pN.
class Update {
  public:
    std::string list(at::TensorList tensors) {
        inputs_.push_back(tensors);
        return "x" + std::to_string(inputs_.size() - 1);
    }
    std::string number(double value) {
        scalars_.push_back(value);
        return "p" + std::to_string(scalars_.size() - 1);
    }
    Update& then(const std::string& statement) {
        code_ += (code_.empty() ? "" : "; ") + statement;
        return *this;
    }
    /// The gradient as the update takes it: `g`, divided by the loss's scale, and its negative
    /// where a maximum is sought. The scaled gradient stays as it is.
    void gradient(at::TensorList gradients, const Maybe& scale, bool maximize) {
        std::string g = list(gradients);
        if (scale) g += " / " + list(scale_ = {*scale});
        then(std::string("g = ") + (maximize ? "-(" + g + ")" : g));
    }
    /// Results that stay as they were where an infinity was found.
    void results(const std::vector<std::pair<std::string, std::string>>& old_and_new,
                 const Maybe& found_inf) {
        std::string found;
        if (found_inf) found = list(found_ = {*found_inf}) + " == 1 ? ";
        for (std::size_t i = 0; i < old_and_new.size(); ++i) {
            const auto& [before, after] = old_and_new[i];
            then(c10::str("y", i, " = ", found, found_inf ? before + " : " : "", after));
        }
    }
    void run(const char* what, const Lists& outs) const {
        if (inputs_[0].empty()) return;
        TORCH_CHECK_NOT_IMPLEMENTED(
            fits_many(inputs_), what,
            " of \"ocl\" with fused=True takes dense parameters, gradients and states of one "
            "floating-point type and one device; foreach=True or fused=False take others.");
        run_many(code_, inputs_, scalars_, outs);
    }

  private:
    Lists inputs_;
    std::vector<double> scalars_;
    std::string code_;
    std::vector<at::Tensor> scale_, found_;
};

struct Adam {
    double lr, beta1, beta2, weight_decay, eps;
    bool amsgrad, maximize, decoupled;
};

void adam(const Adam& how, at::TensorList params, at::TensorList gradients, at::TensorList first,
          at::TensorList second, at::TensorList largest, at::TensorList steps, const Maybe& scale,
          const Maybe& found_inf) {
    Update update;
    const std::string p = update.list(params), m = update.list(first), v = update.list(second),
                      t = update.list(steps), lr = update.number(how.lr);
    update.gradient(gradients, scale, how.maximize);
    if (how.decoupled)
        update.then("p = " + p + " - " + lr + " * " + update.number(how.weight_decay) + " * " + p);
    else
        update.then("p = " + p);
    if (!how.decoupled && how.weight_decay != 0)
        update.then("d = g + " + update.number(how.weight_decay) + " * p");
    else
        update.then("d = g");
    update.then("m = " + m + " + " + update.number(1 - how.beta1) + " * (d - " + m + ")");
    update.then("v = " + update.number(how.beta2) + " * " + v + " + " +
                update.number(1 - how.beta2) + " * d * d");
    // 1 - beta^t, which float would lose the digits of: -expm1(t * log(beta)).
    update.then("a = -expm1(" + t + " * " + update.number(std::log(how.beta1)) + ")");
    update.then("b = -expm1(" + t + " * " + update.number(std::log(how.beta2)) + ")");
    std::vector<std::pair<std::string, std::string>> results;
    std::string root = "v";
    Lists outs{params, first, second};
    if (how.amsgrad) {
        const std::string old = update.list(largest);
        update.then("r = max(" + old + ", v)");
        root = "r";
        results.emplace_back(old, "r");
        outs.push_back(largest);
    }
    update.then("n = p - " + lr + " / a * m / (sqrt(" + root + ") / sqrt(b) + " +
                update.number(how.eps) + ")");
    results.insert(results.begin(), {{p, "n"}, {m, "m"}, {v, "v"}});
    update.results(results, found_inf);
    update.run(how.decoupled ? "AdamW" : "Adam", outs);
}

// Learning rates are numbers, or tensors, for which the host waits.

double rate_of(double lr) {
    return lr;
}

double rate_of(const at::Tensor& lr) {
    return lr.item<double>();
}

template <bool decoupled, typename Rate>
void fused_adam(at::TensorList params, at::TensorList gradients, at::TensorList first,
                at::TensorList second, at::TensorList largest, at::TensorList steps, Rate lr,
                double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
                bool maximize, const Maybe& scale, const Maybe& found_inf) {
    adam({rate_of(lr), beta1, beta2, weight_decay, eps, amsgrad, maximize, decoupled}, params,
         gradients, first, second, largest, steps, scale, found_inf);
}

template <typename Rate>
void fused_sgd(at::TensorList params, at::TensorList gradients, at::TensorList buffers,
               double weight_decay, double momentum, Rate lr, double dampening, bool nesterov,
               bool maximize, bool is_first_step, const Maybe& scale, const Maybe& found_inf) {
    Update update;
    const std::string p = update.list(params);
    update.gradient(gradients, scale, maximize);
    std::string d = "g";
    if (weight_decay != 0) d = "g + " + update.number(weight_decay) + " * " + p;
    update.then("d = " + d);
    std::vector<std::pair<std::string, std::string>> results{{p, "n"}};
    Lists outs{params};
    if (momentum != 0) {
        // The buffer of the first step has no contents yet.
        const std::string old = is_first_step ? "" : update.list(buffers);
        const std::string factor = update.number(momentum);
        update.then("b = " + (is_first_step ? std::string("d")
                                            : factor + " * " + old + " + " +
                                                  update.number(1 - dampening) + " * d"));
        update.then(nesterov ? "s = d + " + factor + " * b" : "s = b");
        results.emplace_back(is_first_step ? "0" : old, "b");
        outs.push_back(buffers);
    } else {
        update.then("s = d");
    }
    update.then("n = " + p + " - " + update.number(rate_of(lr)) + " * s");
    update.results(results, found_inf);
    update.run("SGD", outs);
}

template <typename Rate>
void fused_adagrad(at::TensorList params, at::TensorList gradients, at::TensorList sums,
                   at::TensorList steps, Rate lr, double lr_decay, double weight_decay, double eps,
                   bool maximize, const Maybe& scale, const Maybe& found_inf) {
    Update update;
    const std::string p = update.list(params), s = update.list(sums), t = update.list(steps);
    update.gradient(gradients, scale, maximize);
    update.then("d = g + " + update.number(weight_decay) + " * " + p);
    update.then("s = " + s + " + d * d");
    update.then("n = " + p + " - " + update.number(rate_of(lr)) + " / (1 + (" + t + " - 1) * " +
                update.number(lr_decay) + ") * d / (sqrt(s) + " + update.number(eps) + ")");
    update.results({{p, "n"}, {s, "s"}}, found_inf);
    update.run("Adagrad", {params, sums});
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_fused_adam_", fused_adam<false, double>);
    m.impl("_fused_adam_.tensor_lr", fused_adam<false, const at::Tensor&>);
    m.impl("_fused_adamw_", fused_adam<true, double>);
    m.impl("_fused_adamw_.tensor_lr", fused_adam<true, const at::Tensor&>);
    m.impl("_fused_sgd_", fused_sgd<double>);
    m.impl("_fused_sgd_.tensor_lr", fused_sgd<const at::Tensor&>);
    m.impl("_fused_adagrad_", fused_adagrad<double>);
    m.impl("_fused_adagrad_.tensor_lr", fused_adagrad<const at::Tensor&>);
}

}  // namespace
}  // namespace dlprim_torch

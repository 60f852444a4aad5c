// SPDX-License-Identifier: MIT
// Evaluator.
#include "api/training/evaluator.hpp"

#include "api/net_core.hpp"

#include <cstddef>
#include <utility>

namespace dlprim {

Evaluator::Evaluator(Net net, const Feeder& training)
    : feeder_(training, Feeder::Test{}), net_(std::move(net)) {}

void Evaluator::attach(Net& trained, const Roles& roles, const std::vector<std::string>& metrics,
                       int mistakes) {
    roles_ = roles;
    judges_ = Judges(metrics);
    feeder_.attach(trained, roles);
    if (roles.scores.empty()) return;
    found_.emplace(feeder_.data().target_kind(), static_cast<std::size_t>(mistakes));
    finding_ = found_;
}

void Evaluator::copy_parameters(Net& trained, const Values& instead) {
    std::vector<std::byte> data;
    for (const std::string& name : trained.param_names()) {
        if (core_of(trained).is_kept(name)) continue;
        const auto other = instead.find(name);
        const Tensor from = other != instead.end() ? other->second : trained.param(name);
        Tensor to = net_.param(name);
        data.resize(from.bytes());
        from.copy_to_host(data.data(), data.size());
        to.copy_from_host(data.data(), data.size());
    }
    net_.params_changed();
}

std::optional<Evaluator::Result> Evaluator::run(Net& trained,
                                                const std::map<std::string, Tensor>& instead,
                                                const std::function<bool()>& is_stopped) {
    copy_parameters(trained, instead);
    feeder_.start(0, 0);
    judges_.reset();
    if (finding_) finding_->restart();
    double loss = 0;
    std::int64_t weight = 0;
    for (std::int64_t number = 0; number < feeder_.batches(); ++number) {
        if (is_stopped()) return std::nullopt;
        const Targets targets = feeder_.feed(net_);
        if (targets.examples == 0) continue;  // none of them can be read
        net_.forward();
        loss += net_.output(roles_.loss).to_floats().at(0) * static_cast<double>(targets.weight);
        if (!roles_.scores.empty()) {
            const Tensor scores = net_.output(roles_.scores);
            const std::vector<float> values = scores.to_floats();
            judges_.add(values, scores.shape(), targets);
            finding_->add(values, scores.shape(), targets);
        }
        weight += targets.weight;
    }
    std::swap(found_, finding_);
    complete_ = found_.has_value();
    loss /= static_cast<double>(weight);
    return Result{loss, judges_.values(loss)};
}

}  // namespace dlprim

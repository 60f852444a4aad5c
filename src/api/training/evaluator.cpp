// SPDX-License-Identifier: MIT
// Evaluator.
#include "api/training/evaluator.hpp"

#include "api/training/initial.hpp"

#include <cstddef>
#include <utility>

namespace dlprim {

namespace {

NetOptions for_inference(NetOptions options) {
    options.mode = Mode::inference;
    return options;
}

}  // namespace

Evaluator::Evaluator(const Context& context, const TrainConfig& config, NetOptions options,
                     const Feeder& training)
    : feeder_(training, Feeder::Test{}),
      net_(Net::from_json_file(context, config.net, for_inference(std::move(options)))) {}

Evaluator::Evaluator(const std::vector<NamedDevice>& devices, const TrainConfig& config,
                     NetOptions options, const Feeder& training, Placing place)
    : feeder_(training, Feeder::Test{}),
      open_placed_([devices, &config, how = for_inference(std::move(options)),
                    place = std::move(place)](std::int64_t batch) {
          NetOptions own = how;
          own.batch = static_cast<int>(batch);
          return open_placed_net(devices, config, own, {}, place());
      }) {}

TrainedNet Evaluator::net() {
    if (net_) return *net_;
    return *placed_;
}

std::int64_t Evaluator::batch() {
    return net_ || placed_ ? net().input_shape(roles_.images)[0] : 0;
}

void Evaluator::set_batch(std::int64_t batch, const TrainedNet& trained, const Values& instead) {
    if (net_) {
        net_->reshape(batch);
        return;
    }
    placed_.reset();  // there may be memory for one of them only
    placed_.emplace(open_placed_(batch));
    copy_parameters(trained, instead);
}

void Evaluator::attach(const TrainedNet& trained, const Roles& roles,
                       const std::vector<std::string>& metrics, int mistakes) {
    roles_ = roles;
    judges_ = Judges(metrics);
    feeder_.attach(trained, roles);
    if (roles.scores.empty()) return;
    found_.emplace(feeder_.data().target_kind(), static_cast<std::size_t>(mistakes));
    finding_ = found_;
}

void Evaluator::copy_parameters(const TrainedNet& trained, const Values& instead) {
    std::vector<std::byte> data;
    for (const std::string& name : trained.param_names()) {
        const auto other = instead.find(name);
        const Tensor from = other != instead.end() ? other->second : trained.param(name);
        Tensor to = net().param(name);
        data.resize(from.bytes());
        from.copy_to_host(data.data(), data.size());
        to.copy_from_host(data.data(), data.size());
    }
    net().params_changed();
}

std::optional<Evaluator::Result> Evaluator::run(const TrainedNet& trained,
                                                const std::map<std::string, Tensor>& instead,
                                                const std::function<bool()>& is_stopped) {
    if (net_ || placed_) copy_parameters(trained, instead);
    feeder_.start(0, 0);
    judges_.reset();
    if (finding_) finding_->restart();
    double loss = 0;
    std::int64_t seen = 0;
    for (std::int64_t number = 0; number < feeder_.batches(); ++number) {
        if (is_stopped()) return std::nullopt;
        // The last batch may be smaller, so that a mean over it is a mean over its images only.
        const std::int64_t batch = feeder_.examples();
        if (batch > 0 && this->batch() != batch) set_batch(batch, trained, instead);
        if (batch == 0) {  // none of its examples can be read
            feeder_.take();
            continue;
        }
        const TrainedNet net = this->net();
        const Targets targets = feeder_.feed(net);
        net.forward();
        loss += net.output(roles_.loss).to_floats().at(0) * static_cast<double>(batch);
        if (!roles_.scores.empty()) {
            const Tensor scores = net.output(roles_.scores);
            const std::vector<float> values = scores.to_floats();
            judges_.add(values, scores.shape(), targets);
            finding_->add(values, scores.shape(), targets);
        }
        seen += batch;
    }
    std::swap(found_, finding_);
    complete_ = found_.has_value();
    return Result{loss / static_cast<double>(seen), judges_.values()};
}

}  // namespace dlprim

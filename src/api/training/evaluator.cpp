// SPDX-License-Identifier: MIT
// Evaluator.
#include "api/training/evaluator.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dlprim {

namespace {

NetOptions for_inference(NetOptions options) {
    options.mode = Mode::inference;
    return options;
}

}  // namespace

std::int64_t count_right(const std::vector<float>& scores,
                         const std::vector<std::int32_t>& labels) {
    const std::size_t classes = scores.size() / labels.size();
    std::int64_t right = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const float* row = scores.data() + i * classes;
        right += std::max_element(row, row + classes) - row == labels[i];
    }
    return right;
}

Evaluator::Evaluator(const Context& context, const TrainConfig& config, NetOptions options,
                     const Feeder& training)
    : feeder_(training, Feeder::Test{}),
      net_(Net::from_json_file(context, config.net, for_inference(std::move(options)))) {}

void Evaluator::attach(Net& trained, const Roles& roles) {
    roles_ = roles;
    feeder_.attach(trained, roles);
}

void Evaluator::copy_parameters(Net& trained) {
    std::vector<std::byte> data;
    for (const std::string& name : trained.param_names()) {
        const Tensor from = trained.param(name);
        Tensor to = net_.param(name);
        data.resize(from.bytes());
        from.copy_to_host(data.data(), data.size());
        to.copy_from_host(data.data(), data.size());
    }
    net_.params_changed();
}

Evaluator::Result Evaluator::run(Net& trained) {
    copy_parameters(trained);
    feeder_.start(0, 0);
    Result sums;
    std::int64_t right = 0, seen = 0;
    for (std::int64_t number = 0; number < feeder_.batches(); ++number) {
        // The last batch may be smaller, so that a mean over it is a mean over its images only.
        const std::int64_t batch = feeder_.examples();
        if (batch > 0 && net_.input_shape(roles_.images)[0] != batch) net_.reshape(batch);
        const Targets targets = feeder_.feed(net_);
        if (batch == 0) continue;  // none of its examples can be read
        net_.forward();
        sums.loss += net_.output(roles_.loss).to_floats().at(0) * static_cast<double>(batch);
        if (!roles_.scores.empty())
            right += count_right(net_.output(roles_.scores).to_floats(), targets.classes);
        seen += batch;
    }
    return {sums.loss / static_cast<double>(seen),
            static_cast<double>(right) / static_cast<double>(seen)};
}

}  // namespace dlprim

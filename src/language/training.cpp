// SPDX-License-Identifier: MIT
// train_language_model(): the training of an adapter as a task of train().
#include <dlprim/language_training.hpp>

#include "api/net_impl.hpp"
#include "api/training/task.hpp"
#include "base/text.hpp"
#include "language/adapter.hpp"
#include "language/model_weights.hpp"
#include "language/network.hpp"
#include "language/text_rows.hpp"
#include "runtime/access.hpp"
#include "runtime/devices.hpp"
#include "train/language_config.hpp"

#include <dlprim/language.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace dlprim {

namespace language {

namespace {

/// The model's weights, and first values of the adapter: those of a linear layer for A, and zeros
/// for B, so that the adapter adds nothing before the first step.
class FirstWeights : public ModelWeights {
  public:
    FirstWeights(std::shared_ptr<const ModelFile> model, const ModelSizes& sizes,
                 std::uint64_t seed)
        : ModelWeights(std::move(model), sizes), first_("default", seed, shared_pool()) {}

    void read(const Value& parameter, std::vector<std::byte>& data) override {
        if (keeps(parameter)) return ModelWeights::read(parameter, data);
        first_.read(parameter, data);
        if (is_adapter_up(parameter.name)) std::fill(data.begin(), data.end(), std::byte{0});
    }
    bool keeps(const Value& parameter) const override { return !is_of_adapter(parameter.name); }

  private:
    InitialValues first_;
};

constexpr std::int64_t usual_length = 512;

/// The training of an adapter.
class AdapterTask : public TrainTask {
  public:
    AdapterTask(const Context& context, const LanguageTrainConfig& config)
        : TrainTask(config.common),
          model_(open_model(config.common.net)),
          sizes_(model_->sizes()),
          most_(config.length > 0 ? config.length : std::min(usual_length, sizes_.context)),
          adapter_(Adapter::of(*model_, {config.lora.rank, config.lora.alpha, config.lora.dropout,
                                         config.lora.targets})),
          adapted_(with_adapter(model_, adapter_)) {
        require(most_ <= sizes_.context, "rows of ", most_, " tokens were asked for; the model '",
                config.common.net, "' reads at most ", sizes_.context);
        read_texts(LanguageModel(context, config.common.net), config);
    }

    Settings settings() const override {
        Settings all = TrainTask::settings();
        all.emplace_back("length", cat(most_));
        all.emplace_back("lora.rank", cat(adapter_.options.rank));
        all.emplace_back("lora.alpha", exact(adapter_.options.alpha));
        all.emplace_back("lora.dropout", exact(adapter_.options.dropout));
        return all;
    }
    DataParts data() const override { return data_; }
    Roles roles(Net&) const override { return {"tokens", "labels", "", "loss"}; }
    std::vector<std::string> metrics(const Roles&, TargetKind) const override {
        return {"perplexity"};
    }

    Net open_net(const Context& context, const NetOptions& options) const override {
        const bool trains = options.mode == Mode::training;
        const StepSizes step{.batch = config().batch,
                             .count = length_,
                             .positions = length_,
                             .training = true,
                             .dropout = trains ? adapter_.options.dropout : 0};
        const auto impl = std::make_shared<NetImpl>(
            context, make_network(find_decoder(*model_), *adapted_, sizes_, step), options);
        supply(*impl, std::make_shared<FirstWeights>(adapted_, sizes_, config().seed));
        return Access::handle<Net>(impl);
    }
    std::vector<std::string> set_initial_values(Net&, const ReadWeights&) const override {
        return {};  // the net's source has them
    }
    /// Each row is read from its first place on, and all logits are wanted.
    void set_fixed_inputs(Net& net) const override {
        std::vector<std::int32_t> places(static_cast<std::size_t>(2 * config().batch), 0),
            last(static_cast<std::size_t>(config().batch * length_));
        std::iota(last.begin(), last.end(), 0);
        net.set_input("places", places.data(), places.size() * sizeof places[0]);
        net.set_input("last", last.data(), last.size() * sizeof last[0]);
    }

    std::string save(Net& net, const RunFolder& folder,
                     const std::optional<Preprocessing>&) override {
        const auto values_of = [&](const std::string& name) {
            const HostTensor tensor = net.read_param(name);
            std::vector<float> values(tensor.data.size() / sizeof(float));
            std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
            return values;
        };
        for (auto& [weight, matrices] : adapter_.products) {
            matrices.down_values = values_of(adapter_down(weight));
            matrices.up_values = values_of(adapter_up(weight));
        }
        std::string path = folder.file("adapter");
        adapter_.write(path, *model_, config().net);
        return path;
    }

  private:
    void read_texts(const LanguageModel& reader, const LanguageTrainConfig& config) {
        std::vector<std::shared_ptr<TextRows>> texts;
        for (const std::string& path : {config.train, config.test})
            if (!path.empty())
                texts.push_back(std::make_shared<TextRows>(reader, path, most_, config.pack));
        // Rows are no longer than the longest text needs.
        constexpr std::int64_t step = 16;
        const std::int64_t longest = std::max(texts.front()->longest(), texts.back()->longest());
        length_ = std::min((longest + step - 1) / step * step, most_);
        for (DataPart* const part : {&data_.train, &data_.test}) {
            if (texts.empty()) break;
            texts.front()->set_length(length_);
            part->members.resize(static_cast<std::size_t>(texts.front()->size()));
            std::iota(part->members.begin(), part->members.end(), 0);
            part->data = texts.front();
            texts.erase(texts.begin());
        }
    }

    const std::shared_ptr<const ModelFile> model_;
    const ModelSizes sizes_;
    const std::int64_t most_;  ///< tokens of a row
    Adapter adapter_;
    const std::shared_ptr<const ModelFile> adapted_;
    DataParts data_;
    std::int64_t length_ = 0;  ///< of rows
};

}  // namespace

}  // namespace language

bool is_language_training(const std::string& config) {
    return is_language_train_config(config);
}

TrainResult train_language_model(const Context& context, const TrainCall& call) {
    language::AdapterTask task(context, read_language_train_config(call.config, call.epochs));
    return train_task({context}, {}, call, task);
}

}  // namespace dlprim

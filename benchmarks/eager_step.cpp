// SPDX-License-Identifier: MIT
// Trains a network by eager calls (dp::ops), as a framework with gradients of its own would, and
// prints the memory that a step takes: SGD with momentum, ReLU in place, sums without saved inputs.
//   benchmark_eager_step DEVICE NET.json [BATCH] [STEPS]
#include <dlprim/dlprim.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

namespace {

using dp::Tensor;

struct Call {
    std::string type, options;
    std::vector<std::string> inputs, outputs;
    std::vector<Tensor> params, momenta;
    std::vector<Tensor> saved;  ///< what backward reads, from forward to backward
    bool is_relu = false, is_sum = false;
};

std::vector<Call> calls_of(const char* path, const dp::Context& context) {
    const dp::Context host("cpu");
    dp::Net net = dp::Net::from_json_file(host, path);
    net.initialize();
    const auto names = net.param_names();
    std::ifstream file(path);
    std::vector<Call> calls;
    const auto description = nlohmann::json::parse(file);
    for (const auto& op : description["operators"]) {
        Call call;
        call.type = op["type"];
        const auto options =
            op.contains("options") ? op["options"] : nlohmann::json(nlohmann::json::object());
        call.options = options.dump();
        call.inputs = op["inputs"];
        call.outputs = op["outputs"];
        call.is_relu = call.type == "Activation" && options["activation"] == "relu";
        call.is_sum = call.type == "Elementwise" && options.value("operation", "sum") == "sum" &&
                      !options.contains("activation");
        for (int i = 0;; ++i) {
            const std::string name = op["name"].get<std::string>() + "." + std::to_string(i);
            if (std::find(names.begin(), names.end(), name) == names.end()) break;
            call.params.push_back(net.param(name).to(context));
            call.momenta.emplace_back(context, call.params.back().shape());
            call.momenta.back().fill(0);
        }
        calls.push_back(std::move(call));
    }
    return calls;
}

class Step {
  public:
    Step(const char* path, const dp::Context& context) : calls_(calls_of(path, context)) {
        how_.training = true;
        for (std::size_t i = 0; i < calls_.size(); ++i)
            for (const auto& input : calls_[i].inputs) last_use_[input] = i;
    }

    void run(const Tensor& data, const Tensor& label) {
        std::map<std::string, Tensor> values{{"data", data}, {"label", label}};
        for (std::size_t i = 0; i < calls_.size(); ++i) forward(calls_[i], i, values);
        const Tensor loss = values.at(calls_.back().outputs[0]);
        values.clear();
        std::map<std::string, Tensor> gradients;
        Tensor one(loss.context(), loss.shape());
        one.fill(1);
        gradients[calls_.back().outputs[0]] = one;
        for (std::size_t i = calls_.size(); i-- > 0;) backward(calls_[i], gradients);
        for (Call& call : calls_) update(call);
    }

  private:
    void forward(Call& call, std::size_t index, std::map<std::string, Tensor>& values) {
        std::vector<Tensor> inputs;
        for (const auto& name : call.inputs) inputs.push_back(values.at(name));
        std::vector<Tensor> results =
            dp::ops::call(call.type, call.options, inputs, call.params, how_);
        for (const auto& name : call.inputs)
            if (last_use_[name] == index) values.erase(name);
        if (call.is_relu) call.saved = {results[0]};  // its gradient is that of its own result
        if (!call.is_relu && !call.is_sum) call.saved = std::move(inputs);
        for (std::size_t i = 0; i < call.outputs.size(); ++i) values[call.outputs[i]] = results[i];
    }

    void backward(Call& call, std::map<std::string, Tensor>& gradients) {
        const Tensor dy = gradients.extract(call.outputs[0]).mapped();
        std::vector<Tensor> made(call.inputs.size(), dy);
        if (!call.is_sum)
            made = dp::ops::backward(call.type, call.options, call.saved, call.params, {dy}, how_);
        call.saved.clear();
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            if (!made[i].defined() || call.inputs[i] == "data") continue;
            Tensor& sum = gradients[call.inputs[i]];
            sum = sum.defined() ? dp::ops::add(sum, made[i]) : made[i];
        }
        call_gradients_[&call] = {made.begin() + static_cast<std::ptrdiff_t>(call.inputs.size()),
                                  made.end()};
    }

    void update(Call& call) {
        auto& gradients = call_gradients_[&call];
        for (std::size_t i = 0; i < gradients.size(); ++i) {
            if (!gradients[i].defined()) continue;
            dp::ops::CallOptions in_place;
            in_place.out = {call.momenta[i], call.params[i]};
            dp::ops::pointwise("y0 = p0*x1 + x2; y1 = x0 - p1*y0",
                               {call.params[i], call.momenta[i], gradients[i]}, {0.9, 1e-3},
                               in_place);
        }
        gradients.clear();
    }

    std::vector<Call> calls_;
    std::map<std::string, std::size_t> last_use_;
    std::map<const Call*, std::vector<Tensor>> call_gradients_;
    dp::ops::CallOptions how_;
};

double mib(std::uint64_t bytes) {
    return static_cast<double>(bytes) / (1 << 20);
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 3) {
        std::fprintf(stderr, "usage: benchmark_eager_step DEVICE NET.json [BATCH] [STEPS]\n");
        return 2;
    }
    const dp::Context context(argv[1]);
    const std::int64_t batch = argc > 3 ? std::atoi(argv[3]) : 16;
    const int steps = argc > 4 ? std::atoi(argv[4]) : 3;
    Step step(argv[2], context);
    Tensor data(context, {batch, 3, 224, 224}), label(context, {batch}, dp::DType::i32);
    data.fill(0.5);
    label.fill(1);
    context.finish();
    std::printf("parameters and momenta: %.1f MiB live\n", mib(context.memory().live));
    for (int i = 0; i < steps; ++i) {
        context.reset_memory_peaks();
        const dp::Counters before = context.counters();
        const auto start = std::chrono::steady_clock::now();
        step.run(data, label);
        context.finish();
        const std::chrono::duration<double, std::milli> time =
            std::chrono::steady_clock::now() - start;
        const dp::Counters after = context.counters();
        const dp::MemoryUse use = context.memory();
        std::printf(
            "step %d: peak live %.1f MiB, peak reserved %.1f MiB; now live %.1f, cached %.1f, "
            "reserved %.1f; %llu allocations, %llu launches, %.0f ms\n",
            i, mib(use.peak_live), mib(use.peak_reserved), mib(use.live), mib(use.cached),
            mib(use.reserved),
            static_cast<unsigned long long>(after.allocations - before.allocations),
            static_cast<unsigned long long>(after.launches - before.launches), time.count());
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "benchmark_eager_step: %s\n", error.what());
    return 1;
}

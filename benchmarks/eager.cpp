// SPDX-License-Identifier: MIT
// Times a network called operator by operator (dp::ops) beside the same network as a Net without
// fusion, and the first pass, which compiles kernels and checks engines where no earlier process
// has done so.
//   benchmark_eager DEVICE NET.json [BATCH] [ITERATIONS]
#include <dlprim/dlprim.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>

using Clock = std::chrono::steady_clock;

namespace {

double ms_of(const std::function<void()>& work) {
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Call {
    std::string type, options;
    std::vector<std::string> inputs, outputs;
    std::vector<dp::Tensor> params;
};

/// The operators of the network at `path`, with the parameters that `net` has.
std::vector<Call> calls_of(const char* path, dp::Net& net) {
    std::ifstream file(path);
    const auto description = nlohmann::json::parse(file);
    std::vector<Call> calls;
    for (const auto& op : description["operators"]) {
        if (op["type"] == "SoftmaxWithLoss") continue;
        Call call{op["type"],
                  op.contains("options") ? op["options"].dump() : "{}",
                  op["inputs"],
                  op["outputs"],
                  {}};
        for (int i = 0;; ++i) {
            const std::string name = op["name"].get<std::string>() + "." + std::to_string(i);
            const auto names = net.param_names();
            if (std::find(names.begin(), names.end(), name) == names.end()) break;
            call.params.push_back(net.param(name));
        }
        calls.push_back(std::move(call));
    }
    return calls;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 3) {
        std::fprintf(stderr, "usage: benchmark_eager DEVICE NET.json [BATCH] [ITERATIONS]\n");
        return 2;
    }
    const char* const given = std::getenv("DLPRIM_TRUST");
    const std::string trust = given != nullptr ? given : "";
    const dp::Context context(argv[1]);
    const std::int64_t batch = argc > 3 ? std::atoi(argv[3]) : 1;
    const int iterations = argc > 4 ? std::atoi(argv[4]) : 20;
    dp::NetOptions options;
    options.batch = batch;
    options.fuse = false;
    options.without_losses = true;
    dp::Net net = dp::Net::from_json_file(context, argv[2], options);
    ::setenv("DLPRIM_TRUST", "0", 1);  // so that the checks are left to the calls
    net.initialize();
    net.prepare();
    if (trust.empty())
        ::unsetenv("DLPRIM_TRUST");
    else
        ::setenv("DLPRIM_TRUST", trust.c_str(), 1);

    const std::vector<Call> calls = calls_of(argv[2], net);
    std::map<std::string, int> last_use;
    for (std::size_t i = 0; i < calls.size(); ++i)
        for (const auto& input : calls[i].inputs) last_use[input] = static_cast<int>(i);

    const dp::Tensor data = net.input(net.input_names().front());
    std::vector<float> values(static_cast<std::size_t>(data.shape().numel()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i % 97) / 48.0f - 1.0f;
    dp::Tensor(data).copy_from(values);

    dp::Tensor result;
    const auto eager = [&] {
        std::map<std::string, dp::Tensor> tensors{{net.input_names().front(), data}};
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const Call& call = calls[i];
            std::vector<dp::Tensor> inputs;
            for (const auto& name : call.inputs) inputs.push_back(tensors.at(name));
            result = dp::ops::call(call.type, call.options, inputs, call.params).at(0);
            for (const auto& name : call.inputs)
                if (last_use[name] == static_cast<int>(i)) tensors.erase(name);
            tensors[call.outputs[0]] = result;
        }
    };
    const double first_ms = ms_of([&] {
        eager();
        context.finish();
    });
    // In turns, so that a machine whose speed changes is fair to both.
    std::vector<double> eager_times, net_times, enqueue_times;
    dp::Counters before{}, after{};
    constexpr int warm_up = 3;
    for (int i = 0; i < warm_up + iterations; ++i) {
        if (i == warm_up) before = context.counters();
        double enqueue = 0;
        const double eager_time = ms_of([&] {
            enqueue = ms_of(eager);
            context.finish();
        });
        const double net_time = ms_of([&] {
            net.forward();
            context.finish();
        });
        if (i < warm_up) continue;
        enqueue_times.push_back(enqueue);
        eager_times.push_back(eager_time);
        net_times.push_back(net_time);
    }
    after = context.counters();
    const double eager_ms = median(eager_times), net_ms = median(net_times),
                 enqueue_ms = median(enqueue_times);
    const auto a = result.to_floats(), b = net.output(net.output_names().front()).to_floats();
    double worst = 0, scale = 1e-30;
    for (std::size_t i = 0; i < a.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
        scale = std::max(scale, std::abs(static_cast<double>(b[i])));
    }
    std::printf("%s, batch %lld, on %s\n", argv[2], static_cast<long long>(batch),
                context.info().str().c_str());
    std::printf(
        "operator by operator %9.3f ms (%.2f us of host time a call to enqueue), Net without "
        "fusion %9.3f ms, ratio %.3f\n",
        eager_ms, enqueue_ms * 1e3 / static_cast<double>(calls.size()), net_ms, eager_ms / net_ms);
    std::printf("first pass %.1f ms\n", first_ms);
    std::printf("%.2f allocations a pass, largest difference %.1e of the largest output\n",
                static_cast<double>(after.allocations - before.allocations) / iterations,
                worst / scale);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "benchmark_eager: %s\n", error.what());
    return 1;
}

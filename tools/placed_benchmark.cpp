// SPDX-License-Identifier: MIT
// Benchmarks of placed networks; see placed_benchmark.hpp.
#include "placed_benchmark.hpp"

#include "common.hpp"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

namespace dlprim::tools {

namespace {

class Run {
  public:
    explicit Run(const PlacedBenchmark& options)
        : options_(options), devices_(open_named_devices(options.device)), net_(open()) {}

    double measure(Clock::time_point start) {
        if (options_.weights.empty())
            net_.initialize();
        else
            net_.load_weights(options_.weights, true);
        if (options_.solver) solver_ = std::make_unique<PlacedSolver>(net_, *options_.solver);
        net_.prepare();
        for (const auto& [name, data] : make_inputs(net_))
            net_.set_input(name, data.data(), data.size());
        batch();
        const double first = ms_since(start);
        for (int i = 1; i < options_.warmup; ++i) batch();
        for (int i = 0; i < options_.iterations; ++i) times_.push_back(batch());
        return first;
    }

    void report(double first_batch_ms) {
        std::printf("%s on %s, %s\n", options_.net.c_str(), options_.device.c_str(),
                    what_is_measured(options_));
        for (const NamedDevice& device : devices_)
            std::printf("device            %s is %s\n", device.name.c_str(),
                        device.context.info().str().c_str());
        for (const PlacedNet::Part& part : net_.parts()) {
            std::printf("part              on %s, %zu operators from %s to %s", part.device.c_str(),
                        part.operators.size(), part.operators.front().c_str(),
                        part.operators.back().c_str());
            if (options_.placement.automatic)
                std::printf(", estimated %.3f ms, %.1f MiB", part.estimated_ms,
                            mib(part.estimated_bytes));
            std::printf("\n");
        }
        const Spread times = spread_of(times_);
        std::printf("time a batch      %10.3f ms median, %.3f min, %.3f max\n", times.median,
                    times.min, times.max);
        std::printf("first batch       %10.1f ms\n", first_batch_ms);
        std::uint64_t bytes = 0, count = 0;
        for (const PlacedNet::Move& move : net_.moves()) {
            if (move.gradient && !trains()) continue;
            bytes += move.bytes;
            ++count;
        }
        std::printf("moves a batch     %10.3f MiB in %llu moves between devices\n", mib(bytes),
                    static_cast<unsigned long long>(count));
        for (const auto& [name, peak] : net_.planned_peak_bytes())
            std::printf("planned peak      %10.1f MiB on %s\n", mib(peak), name.c_str());
        for (const std::string& note : net_.notes()) std::printf("note: %s\n", note.c_str());
    }

  private:
    bool trains() const { return options_.backward || options_.solver; }

    PlacedNet open() const {
        NetOptions how = options_.how;
        how.mode = trains() ? Mode::training : Mode::inference;
        how.without_losses = !trains();
        how.progress = terminal_progress();
        return PlacedNet::from_json_file(devices_, options_.net, how, options_.placement);
    }

    double batch() {
        const auto start = Clock::now();
        run_batch(net_, solver_.get(), options_.backward);
        for (const NamedDevice& device : devices_) device.context.finish();
        return ms_since(start);
    }

    const PlacedBenchmark& options_;
    std::vector<NamedDevice> devices_;
    PlacedNet net_;
    std::unique_ptr<PlacedSolver> solver_;
    std::vector<double> times_;
};

}  // namespace

const char* what_is_measured(const PlacedBenchmark& options) {
    if (!options.solver) return options.backward ? "forward and backward" : "inference";
    return options.solver->kind == SolverOptions::Kind::adam ? "training step (Adam)"
                                                             : "training step (SGD)";
}

void run_placed_benchmark(const PlacedBenchmark& options, Clock::time_point start) {
    Run run(options);
    run.report(run.measure(start));
}

}  // namespace dlprim::tools

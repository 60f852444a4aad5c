// SPDX-License-Identifier: MIT
// What benchmarks/python.py measures from Python, from C++. Reads a line for each measurement from
// standard input and answers with a line of numbers, so that both programs stay warm and take
// turns:
//   steps N     milliseconds of each of N training steps (inputs set, Adam, until the device is
//   done) calls N     microseconds for each of N eager calls of a small operator, relu of 64 floats
//   copies N    milliseconds of each of N copies of 64 MB to a tensor and back, in memory that is
//   there fresh N     the same with a new tensor, and back into new memory benchmark_python_peer
//   DEVICE NET.json BATCH
#include <dlprim/dlprim.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

constexpr std::int64_t copied_floats = 16 << 20;

class Peer {
  public:
    Peer(const char* device, std::string net, std::int64_t batch)
        : context_(device),
          path_(std::move(net)),
          batch_(batch),
          small_(context_, {64}),
          large_(copied_floats, 1.0f) {
        small_.copy_from(std::vector<float>(64, 1.0f));
    }

    void steps(int count) {
        if (!solver_) make_solver();
        for (int i = 0; i < count; ++i) {
            const auto start = Clock::now();
            net_->set_input("data", data_.data(), data_.size() * sizeof(float));
            net_->set_input("label", labels_.data(), labels_.size() * sizeof(std::int32_t));
            solver_->step();
            context_.finish();
            std::printf("%.4f ", ms_since(start));
        }
    }

    void calls(int count) {
        dp::Tensor result;
        const auto start = Clock::now();
        for (int i = 0; i < count; ++i) result = dp::ops::relu(small_);
        std::printf("%.4f ", 1000 * ms_since(start) / count);
        context_.finish();
    }

    void copies(int count) {
        dp::Tensor tensor(context_, {copied_floats});
        std::vector<float> back(copied_floats);
        for (int i = 0; i < count; ++i) {
            const auto start = Clock::now();
            tensor.copy_from_host(large_.data(), bytes);
            tensor.copy_to_host(back.data(), bytes);
            std::printf("%.4f ", ms_since(start));
        }
    }

    void fresh(int count) {
        for (int i = 0; i < count; ++i) {
            const auto start = Clock::now();
            dp::Tensor tensor(context_, {copied_floats});
            tensor.copy_from_host(large_.data(), bytes);
            // Not std::vector, which would write zeros first.
            const std::unique_ptr<float[]> back(new float[copied_floats]);
            tensor.copy_to_host(back.get(), bytes);
            std::printf("%.4f ", ms_since(start));
        }
    }

  private:
    static constexpr std::uint64_t bytes = copied_floats * sizeof(float);

    void make_solver() {
        dp::NetOptions options;
        options.mode = dp::Mode::training;
        options.batch = batch_;
        net_.emplace(dp::Net::from_json_file(context_, path_, options));
        net_->initialize();
        dp::SolverOptions adam;
        adam.learning_rate = 1e-4;
        solver_.emplace(*net_, adam);
        data_.assign(static_cast<std::size_t>(net_->input_shape("data").numel()), 0.5f);
        labels_.assign(static_cast<std::size_t>(batch_), 1);
    }

    dp::Context context_;
    std::string path_;
    std::int64_t batch_;
    dp::Tensor small_;
    std::vector<float> large_, data_;
    std::vector<std::int32_t> labels_;
    std::optional<dp::Net> net_;
    std::optional<dp::Solver> solver_;
};

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 4) {
        std::fprintf(stderr, "usage: benchmark_python_peer DEVICE NET.json BATCH\n");
        return 2;
    }
    Peer peer(argv[1], argv[2], std::atoi(argv[3]));
    std::string what;
    for (int count = 0; std::cin >> what >> count;) {
        if (what == "steps") peer.steps(count);
        if (what == "calls") peer.calls(count);
        if (what == "copies") peer.copies(count);
        if (what == "fresh") peer.fresh(count);
        std::printf("\n");
        std::fflush(stdout);
    }
    return 0;
} catch (const dp::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}

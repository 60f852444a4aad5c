// SPDX-License-Identifier: MIT
// Runs networks under a locale and prints, one per line, what must not depend on it: plans as text,
// and results as hashes of their bits. It is a separate program, because a process keeps its
// kernels and plans.
//
//   locale_nets DEVICE LOCALE FOLDER NET.json...
//
// LOCALE is a name for set_locale(). FOLDER keeps checkpoints: each locale reads those that
// "classic" wrote. A net after "--train" also runs one training step. The exit code is 77 if the
// locale does not exist.
#include "locale/locales.hpp"

#include <dlprim/dlprim.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

namespace {

class Hash {
  public:
    void add(const void* data, std::size_t bytes) {
        const auto* from = static_cast<const unsigned char*>(data);
        for (std::size_t i = 0; i < bytes; ++i) value_ = (value_ ^ from[i]) * 1099511628211u;
    }
    void add(std::string_view text) { add(text.data(), text.size()); }
    void add(const dlprim::Tensor& tensor) {
        std::vector<unsigned char> bytes(tensor.bytes());
        tensor.copy_to_host(bytes.data(), bytes.size());
        add(bytes.data(), bytes.size());
    }
    unsigned long long value() const { return value_; }

  private:
    std::uint64_t value_ = 14695981039346656037u;  // FNV-1a
};

void fill_inputs(dlprim::Net& net) {
    std::uint64_t state = 1;
    for (const std::string& name : net.input_names()) {
        const auto count = static_cast<std::size_t>(net.input_shape(name).numel());
        if (net.input_dtype(name) != dlprim::DType::f32) {
            const std::vector<std::int32_t> labels(count, 3);
            net.set_input(name, labels.data(), count * sizeof(std::int32_t));
            continue;
        }
        std::vector<float> data(count);
        for (float& value : data) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            value = static_cast<float>(state >> 40) / 8388608.0f - 1;
        }
        net.set_input(name, data.data(), count * sizeof(float));
    }
}

/// Only hashes are compared, because plans are long. To see a difference, run this program by hand.
unsigned long long plan_of(dlprim::Net& net) {
    Hash hash;
    for (const dlprim::NodeReport& node : net.nodes()) {
        hash.add(node.name + ' ' + node.engine);
        for (const std::string& fused : node.fused) hash.add(fused);
    }
    hash.add(net.memory_report());
    return hash.value();
}

unsigned long long params_of(dlprim::Net& net) {
    Hash hash;
    for (const std::string& name : net.param_names()) hash.add(net.param(name));
    return hash.value();
}

void infer(const dlprim::Context& device, const std::string& path) {
    dlprim::Net net = dlprim::Net::from_json_file(device, path);
    net.initialize();
    fill_inputs(net);
    net.forward();
    Hash hash;
    for (const std::string& name : net.output_names()) hash.add(net.output(name));
    std::printf("%s inference: plan %016llx, results %016llx\n", path.c_str(), plan_of(net),
                hash.value());
}

void train(const dlprim::Context& device, const std::string& path, const std::string& folder,
           const std::string& locale) {
    dlprim::NetOptions options;
    options.mode = dlprim::Mode::training;
    dlprim::Net net = dlprim::Net::from_json_file(device, path, options);
    net.initialize();
    dlprim::SolverOptions how;
    how.kind = dlprim::SolverOptions::Kind::adam;
    how.clip_value = 0.1234567;
    dlprim::Solver solver(net, how);
    fill_inputs(net);
    solver.step();
    std::printf("%s training: plan %016llx, parameters %016llx\n", path.c_str(), plan_of(net),
                params_of(net));
    const std::string file = folder + '/' + std::filesystem::path(path).stem().string() + '-';
    solver.save_checkpoint(file + locale, {{"loss", 1234567.125}});
    solver.step();
    for (const std::string& from : {std::string("classic"), locale}) {
        const auto extra = solver.load_checkpoint(file + from);
        std::printf("%s checkpoint: parameters %016llx, loss %d\n", path.c_str(), params_of(net),
                    extra.at("loss") == 1234567.125);
    }
}

}  // namespace

int main(int count, char** words) try {
    if (count < 5) {
        std::fprintf(stderr, "usage: locale_nets DEVICE LOCALE FOLDER NET.json...\n");
        return 2;
    }
    if (!dlprim::testing::set_locale(words[2])) return 77;
    const dlprim::Context device(words[1]);
    bool trained = false;
    for (int i = 4; i < count; ++i) {
        const std::string word = words[i];
        if (word == "--train") {
            trained = true;
            continue;
        }
        infer(device, word);
        if (trained) train(device, word, words[3], words[2]);
        trained = false;
    }
    return 0;
} catch (const dlprim::Error& error) {
    std::fprintf(stderr, "locale_nets: %s\n", error.what());
    return 1;
}

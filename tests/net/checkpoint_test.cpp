// SPDX-License-Identifier: MIT
// A training that is interrupted and resumed has the bits of one that was not.
#include "net/support.hpp"

#include <fstream>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

SolverOptions options_of(SolverOptions::Kind kind) {
    SolverOptions options;
    options.kind = kind;
    options.momentum = kind == SolverOptions::Kind::sgd ? 0.9 : 0;
    options.accumulate = 2;
    options.clip_norm = 2;
    return options;
}

void run(Net& net, Solver& solver, unsigned from, unsigned to) {
    for (unsigned batch = from; batch < to; ++batch) {
        if (batch == 2) solver.set_learning_rate(0.02);
        feed_small_network(net, batch);
        solver.step();
    }
}

void write_idx(const std::string& path, const std::vector<std::uint32_t>& sizes,
               const std::vector<unsigned char>& data) {
    std::ofstream file(path, std::ios::binary);
    file << '\0' << '\0' << '\x08' << static_cast<char>(sizes.size());
    for (const std::uint32_t size : sizes)
        for (int shift = 24; shift >= 0; shift -= 8) file << static_cast<char>(size >> shift);
    file.write(reinterpret_cast<const char*>(data.data()),
               static_cast<std::streamsize>(data.size()));
}

/// 40 images of 3 x 8 x 8 and their classes, a network, and a configuration whose rate follows a
/// plateau. The test set has other classes, so that its loss rises and the rate falls.
void write_training(const Folder& folder) {
    std::vector<unsigned char> images, labels, others;
    for (unsigned i = 0; i < 40; ++i) {
        labels.push_back(static_cast<unsigned char>(i % 5));
        others.push_back(static_cast<unsigned char>((i + 1) % 5));
        for (unsigned p = 0; p < 3 * 64; ++p)
            images.push_back(static_cast<unsigned char>((i * 37 + p * (1 + i % 5) * 11) % 251));
    }
    write_idx(folder.file("images.idx"), {40, 3, 8, 8}, images);
    write_idx(folder.file("labels.idx"), {40}, labels);
    write_idx(folder.file("others.idx"), {40}, others);
    std::ofstream(folder.file("net.json")) << small_network;
    std::ofstream(folder.file("train.json")) << R"({
      "net": "net.json", "batch": 8, "epochs": 5, "seed": 11,
      "data": {"type": "idx", "train": {"images": "images.idx", "labels": "labels.idx"},
               "test": {"images": "images.idx", "labels": "others.idx"}},
      "solver": {"type": "sgd", "learning_rate": 0.05, "momentum": 0.9, "accumulate": 3},
      "schedule": {"type": "plateau", "patience": 0, "gamma": 0.7},
      "augmentation": {"flip": true, "crop_pad": 1},
      "checkpoints": {"every_epochs": 1, "keep": 10}})";
}

/// The second column of metrics.csv, a row an epoch.
std::vector<double> rates_of(const std::string& path) {
    std::ifstream file(path);
    std::vector<double> rates;
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) rates.push_back(std::stod(line.substr(line.find(',') + 1)));
    return rates;
}

std::map<std::string, std::vector<std::byte>> tensors_of(const std::string& path) {
    std::map<std::string, std::vector<std::byte>> all;
    for (const auto& [name, tensor] : load_tensors(path)) all[name] = tensor.data;
    return all;
}

}  // namespace

TEST_CASE("a resumed solver has the bits of one that went on", "[checkpoint]") {
    ON_EVERY_DEVICE(device) {
        for (const auto kind : {SolverOptions::Kind::sgd, SolverOptions::Kind::adamw}) {
            const Folder folder;
            const std::string path = folder.file("c.h5");
            // 5 batches: an update is half accumulated. Dropout's state and the rate are kept, too.
            Net net = Net::from_json(device, small_network, training(7));
            Solver solver(net, options_of(kind));
            run(net, solver, 0, 5);
            solver.save_checkpoint(path, {{"epoch", 3}, {"best", 0.125}});
            run(net, solver, 5, 9);

            Net resumed = Net::from_json(device, small_network, training(8));
            Solver resumed_solver(resumed, options_of(kind));
            run(resumed, resumed_solver, 0, 1);  // what it did before does not matter
            CHECK(resumed_solver.load_checkpoint(path) ==
                  std::map<std::string, double>{{"epoch", 3}, {"best", 0.125}});
            CHECK(resumed_solver.steps() == 2);
            CHECK(resumed_solver.learning_rate() == 0.02);
            run(resumed, resumed_solver, 5, 9);
            CHECK(resumed_solver.steps() == solver.steps());
            CHECK((all_bits(resumed) == all_bits(net)));
            CHECK((bits(resumed.output("loss")) == bits(net.output("loss"))));

            // It also serves as weights.
            Net tester = Net::from_json(device, small_network);
            tester.load_weights(path);
            CHECK((bits(tester.param("conv.0")) != bits(net.param("conv.0"))));
        }
    }
}

TEST_CASE("a checkpoint that does not fit changes nothing", "[checkpoint]") {
    std::string wider = small_network;
    wider.replace(wider.find("\"outputs\": 20"), 13, "\"outputs\": 30");
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        Net net = Net::from_json(device, small_network, training());
        Solver adam(net, {});
        run(net, adam, 0, 3);
        net.save_weights(folder.file("weights.h5"));
        Net wide = Net::from_json(device, wider, training());
        Solver wide_solver(wide, {});
        wide_solver.save_checkpoint(folder.file("wide.h5"));
        Net plain = Net::from_json(device, small_network, training());
        SolverOptions sgd;
        sgd.kind = SolverOptions::Kind::sgd;
        Solver plain_solver(plain, sgd);
        plain_solver.save_checkpoint(folder.file("sgd.h5"));

        const auto before = all_bits(net);
        check_error(ErrorKind::format, {"weights.h5", "no checkpoint", "load_weights"},
                    [&] { adam.load_checkpoint(folder.file("weights.h5")); });
        check_error(ErrorKind::format, {"wide.h5", "shape"},
                    [&] { adam.load_checkpoint(folder.file("wide.h5")); });
        check_error(ErrorKind::not_found, {"sgd.h5", "moment1"},
                    [&] { adam.load_checkpoint(folder.file("sgd.h5")); });
        CHECK((all_bits(net) == before));
        CHECK(adam.steps() == 3);
        run(net, adam, 3, 4);
        CHECK(adam.steps() == 4);
    }
}

TEST_CASE("a resumed training has the bits of one that went on", "[checkpoint]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        write_training(folder);
        TrainCall call;
        call.config = folder.file("train.json");
        call.out = folder.file("whole");
        const TrainResult whole = train(device, call);
        CHECK(whole.epochs == 5);

        // As if it had been stopped after three epochs.
        call.out = folder.file("resumed");
        std::filesystem::create_directories(call.out);
        call.resume = folder.file("whole/checkpoint_3.h5");
        int epochs = 0;
        call.progress = [&](const TrainProgress& progress) { epochs += progress.epoch_done; };
        const TrainResult resumed = train(device, call);
        CHECK(epochs == 2);
        CHECK((tensors_of(resumed.model) == tensors_of(whole.model)));
        CHECK((tensors_of(folder.file("whole/checkpoint_5.h5")) ==
               tensors_of(folder.file("resumed/checkpoint_5.h5"))));
        CHECK(resumed.train_loss == whole.train_loss);
        CHECK(resumed.test_loss == whole.test_loss);
        // The rate fell before the checkpoint and behind it: the schedule had a state to keep.
        const std::vector<double> rates = rates_of(folder.file("whole/metrics.csv"));
        REQUIRE(rates.size() == 5);
        CHECK(rates[0] == 0.05);
        CHECK(rates[3] < rates[0]);
        CHECK(rates[4] < rates[3]);
        // The report beside the checkpoint goes on in the new folder.
        CHECK(rates_of(folder.file("resumed/metrics.csv")) == rates);
    }
}

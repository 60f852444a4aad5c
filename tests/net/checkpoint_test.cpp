// SPDX-License-Identifier: MIT
// A training run that is interrupted and resumed has the same bits as an uninterrupted one.
#include "engine/engine.hpp"
#include "formats/hdf5_file.hpp"
#include "net/support.hpp"

#include <algorithm>
#include <fstream>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

SolverOptions options_of(SolverOptions::Kind kind) {
    return {.kind = kind,
            .momentum = kind == SolverOptions::Kind::sgd ? 0.9 : 0,
            .clip_norm = 2,
            .accumulate = 2};
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

/// 40 images of 3 x 8 x 8 with their classes, a network, and a configuration with a plateau
/// schedule. The test set has other classes, so its loss rises and the rate falls.
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

/// The second column of metrics.csv, one row per epoch.
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

Net with_precision(const Context& device, Precision precision,
                   std::vector<std::pair<std::string, Precision>> operators = {}) {
    NetOptions options = training();
    options.precision = precision;
    options.precisions = std::move(operators);
    return make_net(device, small_network, options);
}

/// The text in a checkpoint's dataset of bytes; empty if there is none.
std::string text_of(const std::string& path, const std::string& dataset) {
    const Hdf5Reader file(path);
    if (!file.has(dataset)) return "";
    const auto bytes = file.read(dataset);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A copy of a checkpoint as older versions wrote it, without a record of precisions and engines.
void copy_without_record(const std::string& from, const std::string& to) {
    const Hdf5Reader file(from);
    Hdf5Writer copy(to);
    for (const Hdf5Dataset& dataset : file.datasets())
        if (dataset.name != "solver/engines" && dataset.name != "solver/precisions")
            copy.write(dataset.name, dataset.shape, dataset.dtype, file.read(dataset.name).data());
    for (const char* const name :
         {"solver_updates", "solver_batches", "random_step", "random_seed", "learning_rate"})
        copy.attribute("", name, file.attribute("", name).value());
    copy.commit();
}

/// A forward engine for the convolution other than the planner's choice.
std::string another_engine(const Context& device, Net& net) {
    std::string chosen;
    for (const NodeReport& node : net.nodes())
        if (node.name == "conv") chosen = node.engine;
    REQUIRE_FALSE(chosen.empty());
    const auto engines = EngineRegistry::instance().of("Convolution2D", device.traits().host);
    const auto lacks = [](std::string_view name, std::string_view part) {
        return name.find(part) == std::string_view::npos;
    };
    for (auto engine = engines.rbegin(); engine != engines.rend(); ++engine) {
        const std::string_view name = (*engine)->name();
        if (name != chosen && lacks(name, "broken") && lacks(name, "double") &&
            lacks(name, "integers"))
            return std::string(name);
    }
    return "";
}

}  // namespace

TEST_CASE("a resumed solver has the bits of one that went on", "[checkpoint]") {
    ON_EVERY_DEVICE(device) {
        for (const auto kind : {SolverOptions::Kind::sgd, SolverOptions::Kind::adamw}) {
            const Folder folder;
            const std::string path = folder.file("c.h5");
            // 5 batches: an update is half accumulated. Dropout's state and the rate are saved too.
            Net net = make_net(device, small_network, training(7));
            Solver solver(net, options_of(kind));
            run(net, solver, 0, 5);
            solver.save_checkpoint(path, {{"epoch", 3}, {"best", 0.125}});
            run(net, solver, 5, 9);

            Net resumed = make_net(device, small_network, training(8));
            Solver resumed_solver(resumed, options_of(kind));
            run(resumed, resumed_solver, 0, 1);  // what it computed before does not matter
            CHECK(resumed_solver.load_checkpoint(path) ==
                  std::map<std::string, double>{{"epoch", 3}, {"best", 0.125}});
            CHECK(resumed_solver.steps() == 2);
            CHECK(resumed_solver.learning_rate() == 0.02);
            run(resumed, resumed_solver, 5, 9);
            CHECK(resumed_solver.steps() == solver.steps());
            CHECK((all_bits(resumed) == all_bits(net)));
            CHECK((bits(resumed.output("loss")) == bits(net.output("loss"))));

            // A checkpoint also serves as a weights file.
            Net tester = make_net(device, small_network);
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
        Net net = make_net(device, small_network, training());
        Solver adam(net, {});
        run(net, adam, 0, 3);
        net.save_weights(folder.file("weights.h5"));
        Net wide = make_net(device, wider, training());
        Solver wide_solver(wide, {});
        wide_solver.save_checkpoint(folder.file("wide.h5"));
        Net plain = make_net(device, small_network, training());
        SolverOptions sgd;
        sgd.kind = SolverOptions::Kind::sgd;
        Solver plain_solver(plain, sgd);
        plain_solver.save_checkpoint(folder.file("sgd.h5"));

        const auto before = all_bits(net);
        check_error(ErrorKind::format, {"weights.h5", "not a checkpoint", "load_weights"},
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
        TrainCall call{.config = folder.file("train.json"), .out = folder.file("whole")};
        const TrainResult whole = train(device, call);
        CHECK(whole.epochs == 5);

        // As if the run had been stopped after three epochs.
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
        // The rate falls before and after the checkpoint, so the schedule has state to save.
        const std::vector<double> rates = rates_of(folder.file("whole/metrics.csv"));
        REQUIRE(rates.size() == 5);
        CHECK(rates[0] == 0.05);
        CHECK(rates[3] < rates[0]);
        CHECK(rates[4] < rates[3]);
        // The report in the new folder continues the one next to the checkpoint.
        CHECK(rates_of(folder.file("resumed/metrics.csv")) == rates);
    }
}

TEST_CASE("a checkpoint records precisions and engines", "[checkpoint]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        const std::string path = folder.file("c.h5");
        Net net = with_precision(device, Precision::bf16, {{"hidden", Precision::fp32}});
        Solver solver(net, {});
        solver.save_checkpoint(path);
        CHECK(std::get<std::string>(Hdf5Reader(path).attribute("", "precision").value()) == "bf16");
        CHECK(text_of(path, "solver/precisions") == "fp32 hidden\n");
        const std::string engines = '\n' + text_of(path, "solver/engines");
        std::size_t lines = 0;
        for (const NodeReport& node : net.nodes()) {
            if (node.type == "Reorder" || node.type == "Pack" || node.engine.empty()) continue;
            ++lines;
            INFO(node.engine << " " << node.name << " in" << engines);
            CHECK(engines.find('\n' + node.engine + ' ' + node.name + '\n') != std::string::npos);
        }
        CHECK(lines >= 8);
        CHECK(static_cast<std::size_t>(std::count(engines.begin(), engines.end(), '\n')) ==
              lines + 1);
    }
}

TEST_CASE("a run goes on in its precision alone", "[checkpoint]") {
    constexpr Precision all[] = {Precision::fp32, Precision::tf32, Precision::fp16,
                                 Precision::bf16};
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        for (const Precision made : {Precision::fp32, Precision::fp16}) {
            const std::string path = folder.file(std::string(name_of(made)) + ".h5");
            Net net = with_precision(device, made);
            Solver solver(net, {});
            run(net, solver, 0, 1);
            solver.save_checkpoint(path);
            for (const Precision precision : all) {
                Net other = with_precision(device, precision);
                Solver resumed(other, {});
                if (precision == made) {
                    resumed.load_checkpoint(path);
                    CHECK(resumed.steps() == 1);
                    CHECK((all_bits(other) == all_bits(net)));
                    continue;
                }
                const auto before = all_bits(other);
                check_error(ErrorKind::invalid_argument,
                            {path, "trained in " + std::string(name_of(made)),
                             "computes in " + std::string(name_of(precision)),
                             "the precision " + std::string(name_of(made)), "weights"},
                            [&] { resumed.load_checkpoint(path); });
                CHECK((all_bits(other) == before));
                CHECK(resumed.steps() == 0);
            }
            Net mixed = with_precision(device, made, {{"hidden", Precision::bf16}});
            Solver resumed(mixed, {});
            check_error(ErrorKind::invalid_argument,
                        {path, "'hidden'", "in " + std::string(name_of(made)), "in bf16",
                         "the precision hidden=" + std::string(name_of(made))},
                        [&] { resumed.load_checkpoint(path); });
        }
    }
}

TEST_CASE("a checkpoint without a loss scale does not go on with one", "[checkpoint]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        SolverOptions none{.loss_scale = 0};
        Net scaled = with_precision(device, Precision::fp16),
            unscaled = with_precision(device, Precision::fp16);
        Solver with(scaled, {}), without(unscaled, none);
        with.save_checkpoint(folder.file("with.h5"));
        without.save_checkpoint(folder.file("without.h5"));
        check_error(ErrorKind::format, {"without.h5", "no loss scale", "fp16", "loss_scale of 0"},
                    [&] { with.load_checkpoint(folder.file("without.h5")); });
        without.load_checkpoint(folder.file("with.h5"));
        const std::vector<std::string> notes = unscaled.notes();
        CHECK(std::count_if(notes.begin(), notes.end(), [](const std::string& note) {
                  return note.find("holds a loss scale") != std::string::npos;
              }) == 1);
    }
}

TEST_CASE("a run that other engines go on with says so", "[checkpoint]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        const std::string path = folder.file("c.h5");
        Net net = make_net(device, small_network, training());
        Solver solver(net, {});
        solver.save_checkpoint(path);
        const auto told = [&](const NetOptions& options) {
            Net other = make_net(device, small_network, options);
            Solver resumed(other, {});
            resumed.load_checkpoint(path);
            std::vector<std::string> notes = other.notes();
            std::erase_if(notes, [](const std::string& note) {
                return note.find("other engines") == std::string::npos;
            });
            return notes;
        };
        CHECK(told(training()).empty());
        NetOptions forced = training();
        const std::string engine = another_engine(device, net);
        if (engine.empty()) continue;  // the host has only one
        forced.engines = {{"conv", engine}};
        const std::vector<std::string> notes = told(forced);
        REQUIRE(notes.size() == 1);
        for (const std::string& word : {path, std::string("'conv'"), engine, std::string("bits")}) {
            INFO(notes[0] << " is to hold " << word);
            CHECK(notes[0].find(word) != std::string::npos);
        }
    }
}

TEST_CASE("checkpoints of versions that recorded less load", "[checkpoint]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        const std::string path = folder.file("c.h5"), old = folder.file("old.h5");
        Net net = make_net(device, small_network, training());
        Solver solver(net, {});
        run(net, solver, 0, 2);
        solver.save_checkpoint(path);
        copy_without_record(path, old);
        Net other = make_net(device, small_network, training());
        Solver resumed(other, {});
        resumed.load_checkpoint(old);
        CHECK(resumed.steps() == 2);
        CHECK((all_bits(other) == all_bits(net)));
        for (const std::string& note : other.notes())
            CHECK(note.find("old.h5") == std::string::npos);
        Net half = with_precision(device, Precision::fp16);
        Solver scaled(half, {});
        check_error(ErrorKind::format, {"old.h5", "loss scale", "fp16"},
                    [&] { scaled.load_checkpoint(old); });
    }
}

TEST_CASE("a record that is none is refused", "[checkpoint]") {
    const Context device("cpu");
    const Folder folder;
    const std::string path = folder.file("c.h5"), bad = folder.file("bad.h5");
    Net net = make_net(device, small_network, training());
    Solver solver(net, {});
    solver.save_checkpoint(path);
    const auto refused = [&](const std::string& precision, const std::string& dataset,
                             const std::string& text, const std::vector<std::string>& words) {
        const Hdf5Reader file(path);
        Hdf5Writer copy(bad);
        for (const Hdf5Dataset& each : file.datasets())
            if (each.name != dataset)
                copy.write(each.name, each.shape, each.dtype, file.read(each.name).data());
        if (!dataset.empty())
            copy.write(dataset, Shape{static_cast<std::int64_t>(text.size())}, DType::u8,
                       text.data());
        for (const char* const name : {"solver_updates", "solver_batches", "random_step"})
            copy.attribute("", name, file.attribute("", name).value());
        copy.attribute("", "precision", precision);
        copy.commit();
        check_error(ErrorKind::format, words, [&] { solver.load_checkpoint(bad); });
    };
    refused("fp8", "", "", {"bad.h5", "'fp8'"});
    refused("fp32", "solver/precisions", "fp8 conv\n", {"bad.h5", "'fp8'"});
    refused("fp32", "solver/engines", "conv\n", {"bad.h5", "solver/engines", "name"});
}

TEST_CASE("a training's precision: the call's, the checkpoint's, the configuration's",
          "[checkpoint]") {
    const Context device("cpu");
    const Folder folder;
    write_training(folder);
    const auto configure = [&](const std::string& precision) {
        std::ifstream file(folder.file("train.json"));
        std::string text{std::istreambuf_iterator<char>(file), {}};
        text.replace(text.find('{'), 1, "{\"precision\": \"" + precision + "\",");
        std::ofstream(folder.file(precision + ".json")) << text;
        return folder.file(precision + ".json");
    };
    const auto precision_of = [&](const std::string& path) {
        return std::get<std::string>(Hdf5Reader(path).attribute("", "precision").value());
    };
    std::vector<std::string> notes;
    TrainCall call;
    call.note = [&](std::string_view note) { notes.emplace_back(note); };
    call.epochs = 1;
    call.replace = true;
    call.config = configure("bf16");
    call.out = folder.file("a");
    train(device, call);
    CHECK(precision_of(folder.file("a/checkpoint_1.h5")) == "bf16");
    call.precision = Precision::fp16;
    call.precisions = {{"Convolution2D", Precision::fp32}};
    train(device, call);
    CHECK(precision_of(folder.file("a/checkpoint_1.h5")) == "fp16");
    CHECK(text_of(folder.file("a/checkpoint_1.h5"), "solver/precisions") == "fp32 conv\n");
    CHECK(notes.empty());

    // Nothing is given: the checkpoint's record applies, also for single operators.
    call.precision.reset();
    call.precisions.clear();
    call.resume = folder.file("a/checkpoint_1.h5");
    call.epochs = 2;
    train(device, call);
    CHECK(precision_of(folder.file("a/checkpoint_2.h5")) == "fp16");
    CHECK(text_of(folder.file("a/checkpoint_2.h5"), "solver/precisions") == "fp32 conv\n");
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find("continues in fp16") != std::string::npos);
    CHECK(notes[0].find("configuration says bf16") != std::string::npos);

    call.out = folder.file("b");
    call.precision = Precision::fp32;
    check_error(ErrorKind::invalid_argument, {"trained in fp16", "in fp32"},
                [&] { train(device, call); });
    call.precision = Precision::fp16;
    call.precisions = {{"conv", Precision::bf16}};
    check_error(ErrorKind::invalid_argument, {"'conv'", "in fp32", "in bf16"},
                [&] { train(device, call); });
    call.resume.clear();
    call.config = configure("fp8");
    check_error(ErrorKind::format, {"fp8.json", "precision", "'fp8'", "fp16"},
                [&] { train(device, call); });
}

// SPDX-License-Identifier: MIT
// Several threads at once: eager calls on one context, networks, trainings and teams with contexts
// of their own, and loaders of one data set. Results have the bits that a single thread computes.
// ThreadSanitizer runs these tests too (scripts/sanitize.sh --thread).
#include "support/threads.hpp"
#include "formats/hdf5_file.hpp"
#include "net/training_set.hpp"
#include "runtime/access.hpp"
#include "runtime/counting.hpp"
#include "train/data/open_data.hpp"

#include <exception>
#include <functional>
#include <optional>
#include <thread>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

constexpr unsigned threads = 4;

/// Ten eager calls. All threads share their plans. Some plans have packed weights, some use step
/// scalars, and some change a parameter.
class Calls {
  public:
    static constexpr unsigned count = 10, kinds = 3;

    /// `kind` selects shapes and values.
    Calls(const Context& device, unsigned kind)
        : device_(device),
          images_(1 + kind % 2),
          x_(device, Shape{images_, 19, 8, 8}, floats(images_ * 19 * 64, 10 * kind + 1)),
          weight_(device, Shape{20, 19, 3, 3}, floats(20 * 19 * 9, 10 * kind + 2)),
          depthwise_(device, Shape{20, 1, 3, 3}, floats(20 * 9, 10 * kind + 3)),
          matrix_(device, Shape{16, 40}, floats(640, 10 * kind + 4)) {}

    std::vector<Bytes> run() const {
        const char* const conv = R"({"channels_out": 20, "kernel": 3, "pad": 1, "bias": false})";
        const char* const by_channel =
            R"({"channels_out": 20, "kernel": 3, "pad": 1, "groups": 20, "bias": false})";
        const Tensor y = ops::call("Convolution2D", conv, {x_}, {weight_}).at(0);
        const Tensor z = ops::relu(y);
        const Tensor w = ops::call("Convolution2D", by_channel, {z}, {depthwise_}).at(0);
        const Tensor pooled =
            ops::call("Pooling2D", R"({"mode": "max", "kernel": 2, "stride": 2})", {w}).at(0);
        const auto gradients =
            ops::backward("Convolution2D", by_channel, {z}, {depthwise_}, {ops::add(w, z)});
        const Tensor rows = pooled.reshape({images_ * 20, 16});
        const Tensor product = ops::softmax(ops::matmul(rows, matrix_));
        const Tensor dropped = dropout(product);
        const Tensor sums = ops::pointwise("y0 = sum[0](x0*x0)", {dropped}).at(0);
        std::vector<Bytes> all;
        for (const Tensor& tensor : {y, pooled, gradients.at(0), gradients.at(1), dropped, sums})
            all.push_back(bits(tensor));
        return all;
    }

  private:
    static std::vector<float> floats(std::int64_t size, unsigned seed) {
        return random_floats(static_cast<std::size_t>(size), seed);
    }
    Tensor dropout(const Tensor& tensor) const {
        ops::CallOptions options{.training = true, .seed = static_cast<std::uint64_t>(images_)};
        return ops::call("Dropout", R"({"p": 0.5})", {tensor}, {}, options).at(0);
    }

    Context device_;
    std::int64_t images_;
    Tensor x_, weight_, depthwise_, matrix_;
};

using Bits = std::map<std::string, Bytes>;

/// Five steps of small_network, then one batch of inference with the trained parameters.
Bits train_small(const Context& device, unsigned seed) {
    Net net = make_net(device, small_network, training(seed));
    Solver solver(net, {});
    for (unsigned step = 0; step < 5; ++step) {
        feed_small_network(net, step + seed);
        solver.step();
    }
    Net tester = Net::from_json(device, small_network, with_mode(Mode::inference));
    tester.prepare();
    for (const std::string& name : net.param_names()) {
        const Bytes bytes = bits(net.param(name));
        tester.param(name).copy_from_host(bytes.data(), bytes.size());
    }
    tester.params_changed();
    feed_small_network(tester, seed);
    tester.forward();
    Bits all = all_bits(net);
    all["the loss"] = bits(net.output("loss"));
    all["scores"] = bits(tester.output("scores"));
    return all;
}

void set_picture(Net& net, unsigned seed) {
    const Shape shape = net.input_shape("data");
    set_floats(net, "data", random_floats(static_cast<std::size_t>(shape.numel()), seed));
    std::vector<std::int32_t> labels(static_cast<std::size_t>(shape[0]));
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i + seed);
    set_labels(net, "label", labels);
}

/// A network from a file with small images: one inference and two training steps.
Bits run_network(const Context& device, const std::string& file) {
    NetOptions options{.input_shapes = {{"data", Shape{2, 3, 32, 32}}, {"label", Shape{2}}}};
    Net net = Net::from_json_file(device, file, options);
    net.initialize();
    set_picture(net, 1);
    net.forward();
    Bits all;
    for (const std::string& name : net.output_names()) all[name] = bits(net.output(name));
    options.mode = Mode::training;
    Net trained = Net::from_json_file(device, file, options);
    trained.initialize();
    SolverOptions momentum{.learning_rate = 1e-3, .momentum = 0.9};
    Solver solver(trained, momentum);
    for (unsigned step = 0; step < 2; ++step) {
        set_picture(trained, step);
        solver.step();
    }
    all["the loss"] = bits(trained.output("loss"));
    all.merge(all_bits(trained));
    return all;
}

/// The result of train() with the files of write_training_set().
Bits train_from_files(const Context& device, const Folder& folder, const std::string& out) {
    TrainCall call{.config = folder.file("train.json"), .out = folder.file(out)};
    const TrainResult result = train(device, call);
    Net net = Net::from_json_file(device, folder.file("net.json"));
    net.load_weights(result.model);
    return all_bits(net);
}

/// Parameters after three batches of two shards, each on a context of its own.
Bits train_team(const Context& device, unsigned seed) {
    SolverOptions options{.shards = 2};
    Team team(
        {Context(device.info().id), Context(device.info().id)},
        [&](const Context& context, int) {
            return make_net(context, small_network, training(seed));
        },
        options);
    for (unsigned step = 0; step < 3; ++step)
        team.step([&](int rank, int shard) {
            feed_small_network(team.net(rank), 2 * step + static_cast<unsigned>(shard) + seed);
        });
    Bits all = all_bits(team.net(0));
    all["the loss"] = bits(team.net(1).output("loss"));
    return all;
}

/// The images of write_training_set() as IDX, or numbers as HDF5. HDF5's library is for one thread.
DataConfig data_of(const Folder& folder, DataConfig::Type type) {
    DataConfig config;
    config.type = type;
    if (type == DataConfig::Type::idx) {
        config.train = {"", folder.file("images"), folder.file("labels"), ""};
        config.augmentation.flip = true;
        config.augmentation.crop_height = config.augmentation.crop_width = 6;
    } else {
        config.train = {folder.file("rows.h5"), "x", "y", ""};
    }
    return config;
}

/// Values and examples of 40 batches, which are more than two epochs.
std::vector<float> read_batches(const DataPart& part, const DataConfig& config, unsigned seed) {
    LoaderOptions options;
    options.batch = 4;
    options.seed = seed;
    options.threads = 2;
    const std::unique_ptr<Loader> loader = make_loader(part, config, options);
    std::vector<float> all;
    for (int i = 0; i < 40; ++i) {
        if (i == 30) loader->start(0, 3);
        const Batch& batch = loader->next();
        all.insert(all.end(), batch.inputs.begin(), batch.inputs.end());
        for (const std::int64_t example : batch.examples)
            all.push_back(static_cast<float>(example));
        loader->waits();
    }
    return all;
}

void write_rows(const std::string& file, unsigned seed) {
    constexpr std::int64_t rows = 64, columns = 5;
    const std::vector<float> values = random_floats(rows * columns, seed);
    std::vector<std::int32_t> labels;
    for (int i = 0; i < rows; ++i) labels.push_back(i % 3);
    Hdf5Writer writer(file);
    writer.write("x", Shape{rows, columns}, DType::f32, values.data());
    writer.write("y", Shape{rows}, DType::i32, labels.data());
    writer.commit();
}

}  // namespace

TEST_CASE("a thousand eager calls from each of four threads on one context", "[threads]") {
    ON_EVERY_DEVICE(device) {
        std::vector<std::vector<Bytes>> right;
        for (unsigned kind = 0; kind < Calls::kinds; ++kind)
            right.push_back(Calls(device, kind).run());
        // Another context, so that the first calls, which plan and compile, run concurrently too.
        const Context fresh(device.info().id);
        std::vector<int> wrong(threads, 0);
        in_threads(threads, [&](unsigned i) {
            std::vector<Calls> calls;
            for (unsigned kind = 0; kind < Calls::kinds; ++kind) calls.emplace_back(fresh, kind);
            for (unsigned round = 0; round < 1000 / Calls::count; ++round) {
                const unsigned kind = (round + i) % Calls::kinds;
                wrong[i] += calls[kind].run() != right[kind];
            }
        });
        CHECK(wrong == std::vector<int>(threads, 0));
    }
}

TEST_CASE("tensors that threads share are made plain once", "[threads]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, {2, 19, 8, 8}, random_floats(2 * 19 * 64, 1));
        const Tensor weight(device, {20, 19, 3, 3}, random_floats(20 * 19 * 9, 2));
        const auto convolved = [&] {
            const char* const options =
                R"({"channels_out": 20, "kernel": 3, "pad": 1, "bias": false})";
            return ops::call("Convolution2D", options, {x}, {weight}).at(0);
        };
        const Bytes right = bits(convolved()), positive = bits(ops::relu(convolved()));
        int wrong = 0;
        for (int round = 0; round < 25; ++round) {
            const Tensor shared = convolved();
            std::vector<Bytes> read(threads);
            std::vector<const Buffer*> memory(threads);
            in_threads(threads, [&](unsigned i) {
                const Tensor mine = shared, part = mine.slice(0, 0, 1);
                if (i % 2 == 0) {
                    read[i] = bits(mine);
                    memory[i] = Access::buffer(part).get();
                } else {
                    read[i] = bits(ops::relu(mine));
                    memory[i] = Access::buffer(mine).get();
                }
            });
            for (unsigned i = 0; i < threads; ++i)
                wrong += read[i] != (i % 2 == 0 ? right : positive) || memory[i] != memory[0];
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("nets train in threads, a context each", "[threads]") {
    ON_EVERY_DEVICE(device) {
        std::vector<Bits> right, found(threads);
        for (unsigned i = 0; i < threads; ++i) right.push_back(train_small(device, i % 3 + 1));
        in_threads(threads, [&](unsigned i) {
            Context::devices();
            const Context own(device.info().id);
            found[i] = train_small(own, i % 3 + 1);
        });
        for (unsigned i = 0; i < threads; ++i) CHECK((found[i] == right[i]));
    }
}

TEST_CASE("a net trains while other threads make eager calls on its context", "[threads]") {
    ON_EVERY_DEVICE(device) {
        const Bits right = train_small(device, 1);
        const std::vector<Bytes> right_calls = Calls(device, 0).run();
        Bits found;
        std::vector<int> wrong(threads, 0);
        in_threads(threads, [&](unsigned i) {
            if (i == 0) {
                found = train_small(device, 1);
                return;
            }
            const Calls calls(device, 0);
            for (int round = 0; round < 20; ++round) {
                wrong[i] += calls.run() != right_calls;
                device.counters();
            }
            device.finish();
        });
        CHECK((found == right));
        CHECK(wrong == std::vector<int>(threads, 0));
    }
}

TEST_CASE("trainings from files run in threads", "[threads]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        write_training_set(folder);
        const Bits right = train_from_files(device, folder, "alone");
        std::vector<Bits> found(threads);
        in_threads(threads, [&](unsigned i) {
            const Context own(device.info().id);
            found[i] = train_from_files(own, folder, "out" + std::to_string(i));
        });
        for (unsigned i = 0; i < threads; ++i) CHECK((found[i] == right));
    }
}

TEST_CASE("networks run in threads, a context each", "[threads]") {
    ON_EVERY_DEVICE(device) {
        if (!device.traits().host) continue;  // on others such kernels would take minutes
        for (const std::string file :
             {DLPRIM_NETS "/../../tests/nets/mobilenet_v3_small.json", DLPRIM_NETS "/resnet18.json",
              DLPRIM_NETS "/mobilenet_v2.json", DLPRIM_NETS "/../../tests/nets/squeezenet1_0.json",
              DLPRIM_NETS "/../../tests/nets/googlenet.json",
              DLPRIM_NETS "/../../tests/nets/efficientnet_b0.json"}) {
            INFO(file);
            const Bits right = run_network(device, file);
            Bits found[2];
            in_threads(2, [&](unsigned i) {
                const Context own(device.info().id);
                found[i] = run_network(own, file);
            });
            CHECK((found[0] == right));
            CHECK((found[1] == right));
        }
    }
}

TEST_CASE("loaders of one data set read in threads", "[threads]") {
    const Folder folder;
    write_training_set(folder);
    write_rows(folder.file("rows.h5"), 1);
    for (const DataConfig::Type type : {DataConfig::Type::idx, DataConfig::Type::hdf5}) {
        const DataConfig config = data_of(folder, type);
        const DataPart part = open_data(config, 1).train;
        std::vector<std::vector<float>> right, found(threads);
        for (unsigned i = 0; i < threads; ++i) right.push_back(read_batches(part, config, i % 3));
        in_threads(threads, [&](unsigned i) {
            // Other files are opened and written meanwhile.
            write_rows(folder.file("other" + std::to_string(i) + ".h5"), i);
            const DataPart own = open_data(config, 1).train;
            found[i] = read_batches(i % 2 == 0 ? part : own, config, i % 3);
        });
        CHECK(found == right);
    }
}

TEST_CASE("teams train in threads, contexts of their own each", "[threads]") {
    ON_EVERY_DEVICE(device) {
        const Bits right[] = {train_team(device, 1), train_team(device, 2)};
        Bits found[2];
        in_threads(2, [&](unsigned i) { found[i] = train_team(device, i + 1); });
        CHECK((found[0] == right[0]));
        CHECK((found[1] == right[1]));
    }
}

TEST_CASE("what one thread leaves uncounted is counted in others", "[threads]") {
    ON_EVERY_DEVICE(device) {
        const auto add_one = [&](int calls) {
            const Tensor x(device, Shape{8}, std::vector<float>(8, 0));
            ops::CallOptions how{.out = {x}};
            for (int i = 0; i < calls; ++i)
                ops::call("Pointwise", R"({"code": "y0 = x0 + 1"})", {x}, {}, how);
            for (int i = 0; i < 5; ++i) device.finish();
        };
        add_one(3);
        const Counters before = device.counters();
        in_threads(threads, [&](unsigned i) {
            std::optional<Uncounted> uncounted;
            if (i == 0) uncounted.emplace();
            add_one(100);
        });
        const Counters after = device.counters();
        CHECK(after.launches - before.launches == std::uint64_t{100} * (threads - 1));
        CHECK(after.allocated_bytes == before.allocated_bytes);
        add_one(0);
        const Counters waited = device.counters();
        {
            const Uncounted uncounted;
            add_one(1);
        }
        CHECK(waited.waits >= after.waits + 5);
        CHECK(device.counters().waits == waited.waits);
        CHECK(device.counters().launches == waited.launches);
    }
}

TEST_CASE("caches are emptied while threads make calls", "[threads]") {
    ON_EVERY_DEVICE(device) {
        std::vector<std::vector<Bytes>> right;
        for (unsigned kind = 0; kind < Calls::kinds; ++kind)
            right.push_back(Calls(device, kind).run());
        const Context fresh(device.info().id);  // whose plans no other test uses
        std::vector<int> wrong(threads, 0);
        in_threads(threads, [&](unsigned i) {
            for (unsigned round = 0; round < 20; ++round) {
                if (i == 0) {
                    fresh.release_cached();
                    fresh.memory();
                    continue;
                }
                const unsigned kind = (round + i) % Calls::kinds;
                wrong[i] += Calls(fresh, kind).run() != right[kind];
            }
        });
        CHECK(wrong == std::vector<int>(threads, 0));
    }
}

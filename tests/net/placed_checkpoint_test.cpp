// SPDX-License-Identifier: MIT
// Checkpoints of placed networks: they are those of one device, and training goes on from them on
// any placement with the bits of a run that was never interrupted.
#include "net/placed_support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Bits = std::map<std::string, Bytes>;

/// small_network with these operators on device b. It has batch norm and dropout.
std::string with_on_b(const std::vector<std::string>& operators) {
    std::map<std::string, std::string> device_of;
    for (const std::string& op : operators) device_of[op] = "b";
    return placed(small_network, device_of);
}

template <typename AnyNet, typename AnySolver>
void train(AnyNet& net, AnySolver& solver, unsigned from, unsigned to) {
    for (unsigned step = from; step < to; ++step) {
        feed(net, step);
        solver.set_learning_rate(1e-2 / (step + 1));
        solver.step();
    }
}

SolverOptions averaged_adam() {
    return {.average = 0.9};
}

struct Placed {
    Placed(const std::vector<NamedDevice>& devices, const std::string& json,
           const SolverOptions& how)
        : net(PlacedNet::from_json(devices, json, training(7))) {
        net.initialize();
        solver = std::make_unique<PlacedSolver>(net, how);
    }
    PlacedNet net;
    std::unique_ptr<PlacedSolver> solver;
};

}  // namespace

TEST_CASE("a checkpoint resumes on any placement with the bits of one run", "[placed_checkpoint]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        const SolverOptions how = averaged_adam();
        const std::vector<NamedDevice> devices = two_like(device);
        Net whole = make_net(device, small_network, training(7));
        Solver whole_solver(whole, how);
        train(whole, whole_solver, 0, 3);
        whole_solver.save_checkpoint(folder.file("one.h5"), {{"mine", 4}});
        train(whole, whole_solver, 3, 6);
        const Bits want = bits_of_params(whole);

        Placed first(devices, with_on_b({"hidden", "drop"}), how);
        train(first.net, *first.solver, 0, 3);
        first.solver->save_checkpoint(folder.file("two.h5"), {{"mine", 4}});

        // The files hold the same tensors.
        const auto one = load_tensors(folder.file("one.h5")),
                   two = load_tensors(folder.file("two.h5"));
        for (const auto& [name, tensor] : one) {
            INFO(name);
            REQUIRE(two.count(name) == 1);
            if (name.find("solver/engines") == std::string::npos)
                CHECK(two.at(name).data == tensor.data);
        }
        CHECK(one.size() == two.size());

        for (const char* const file : {"one.h5", "two.h5"}) {
            INFO(file);
            Placed other(devices, with_on_b({"scores", "loss"}), how);
            CHECK(other.solver->load_checkpoint(folder.file(file)).at("mine") == 4);
            CHECK(other.solver->steps() == 3);
            CHECK(other.solver->learning_rate() == 1e-2 / 3);
            train(other.net, *other.solver, 3, 6);
            CHECK((bits_of_params(other.net) == want));
            Net alone = make_net(device, small_network, training(1));
            Solver alone_solver(alone, how);
            alone_solver.load_checkpoint(folder.file(file));
            train(alone, alone_solver, 3, 6);
            CHECK((bits_of_params(alone) == want));
            alone_solver.use_averages();
            other.solver->use_averages();
            CHECK((bits_of_params(other.net) == bits_of_params(alone)));
        }
    }
}

TEST_CASE("a checkpoint of a run with shards resumes with the bits of one run",
          "[placed_checkpoint]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        SolverOptions how{.shards = 2};
        Net whole = make_net(device, small_network, training(7));
        Solver whole_solver(whole, how);
        train(whole, whole_solver, 0, 6);
        const Bits want = bits_of_params(whole);

        const std::vector<NamedDevice> devices = two_like(device);
        Placed first(devices, with_on_b({"hidden", "drop"}), how);
        train(first.net, *first.solver, 0, 2);
        first.solver->save_checkpoint(folder.file("two.h5"));
        train(first.net, *first.solver, 2, 3);
        check_error(invalid, {"middle of a batch", "1 of its 2 shards"},
                    [&] { first.solver->save_checkpoint(folder.file("half.h5")); });
        Placed other(devices, with_on_b({"scores", "loss"}), how);
        other.solver->load_checkpoint(folder.file("two.h5"));
        train(other.net, *other.solver, 2, 6);
        CHECK((bits_of_params(other.net) == want));
        // The shard that was fed belongs to a batch that is no more.
        first.solver->load_checkpoint(folder.file("two.h5"));
        train(first.net, *first.solver, 2, 6);
        CHECK((bits_of_params(first.net) == want));
        Placed unlike(devices, with_on_b({"hidden"}), {});
        check_error(invalid, {"shards 2", "shards 1"},
                    [&] { unlike.solver->load_checkpoint(folder.file("two.h5")); });
    }
}

TEST_CASE("files that are no checkpoints of the network are refused", "[placed_checkpoint]") {
    const Folder folder;
    const std::vector<NamedDevice> devices = two_like(Context("host"));
    Placed adam(devices, with_on_b({"hidden"}), {});
    train(adam.net, *adam.solver, 0, 1);
    adam.solver->save_checkpoint(folder.file("adam.h5"));
    const Bits before = bits_of_params(adam.net);
    adam.net.save_weights(folder.file("weights.h5"));
    check_error(ErrorKind::format, {"weights.h5", "not a checkpoint"},
                [&] { adam.solver->load_checkpoint(folder.file("weights.h5")); });
    Placed averaged(devices, with_on_b({"hidden"}), averaged_adam());
    check_error(ErrorKind::not_found, {"adam.h5", "average"},
                [&] { averaged.solver->load_checkpoint(folder.file("adam.h5")); });
    check_error(invalid, {"no comma"}, [&] {
        adam.solver->save_checkpoint(folder.file("x.h5"), {{"a,b", 1}});
    });
    CHECK((bits_of_params(adam.net) == before));
}

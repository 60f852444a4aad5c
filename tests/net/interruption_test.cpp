// SPDX-License-Identifier: MIT
// An exception from a progress callback ends the call and reaches the caller. The net then works as
// if it had not been called.
#include "net/support.hpp"
#include "net/training_set.hpp"

#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Not an Error of the library: any exception that a wrapper's callback may throw.
struct Stop {};

/// Throws at the `at`th call while it is armed.
struct Interruption {
    int at = 0, calls = 0;
    bool armed = true;
    void operator()() {
        if (armed && ++calls > at) throw Stop{};
    }
};

NetOptions interrupted_by(Interruption& interruption) {
    NetOptions options = training(3);
    options.progress = [&interruption](std::string_view, int, int) { interruption(); };
    return options;
}

/// The call that trains on a small set, which lies in the folder.
TrainCall training_in(const Folder& folder) {
    write_training_set(folder);
    return {.config = folder.file("train.json"), .out = folder.file("out")};
}

Bytes loss_after_a_step(Net& net, Solver& solver) {
    feed_small_network(net, 1);
    solver.step();
    return bits(net.output("loss"));
}

}  // namespace

TEST_CASE("a callback that throws ends planning, and the net can be planned later",
          "[interruption]") {
    ON_EVERY_DEVICE(device) {
        Net plain = make_net(device, small_network, training(3));
        Solver plain_solver(plain, {});
        const Bytes expected = loss_after_a_step(plain, plain_solver);
        Interruption interruption;
        const Context fresh(device.info().id);  // has to compile its programs itself
        Net net = make_net(fresh, small_network, interrupted_by(interruption));
        if (device.info().kind != DeviceKind::host) {  // the host compiles nothing
            CHECK_THROWS_AS(net.prepare(), Stop);
            CHECK_THROWS_AS(Solver(net, {}), Stop);
        }
        interruption.armed = false;
        Solver solver(net, {});
        CHECK((loss_after_a_step(net, solver) == expected));
    }
}

TEST_CASE("a callback that throws ends a profile, which has changed nothing", "[interruption]") {
    ON_EVERY_DEVICE(device) {
        Interruption interruption;
        interruption.armed = false;
        Net net = make_net(device, small_network, interrupted_by(interruption));
        Solver solver(net, {});
        loss_after_a_step(net, solver);
        const auto before = all_bits(net);
        for (const int at : {0, 5, 20}) {
            interruption = {at, 0, true};
            CHECK_THROWS_AS(net.profile(true), Stop);
            CHECK((all_bits(net) == before));
        }
        interruption.armed = false;
        CHECK(net.profile(true).size() > 20);
        Net plain = make_net(device, small_network, training(3));
        Solver plain_solver(plain, {});
        loss_after_a_step(plain, plain_solver);
        CHECK((loss_after_a_step(net, solver) == loss_after_a_step(plain, plain_solver)));
    }
}

TEST_CASE("an Error of a callback is no failure of the engine before it", "[interruption]") {
    ON_EVERY_DEVICE(device) {
        const Context fresh(device.info().id);
        NetOptions options = training(3);
        int left = 5;
        options.progress = [&left](std::string_view what, int, int) {
            if (what.starts_with("profiling") && left-- == 0)
                throw Error(ErrorKind::numeric, "enough");
        };
        Net net = make_net(fresh, small_network, options);
        feed_small_network(net, 0);
        net.forward();
        const std::vector<std::string> notes = net.notes();
        check_error(ErrorKind::numeric, {"enough"}, [&] { net.profile(false); });
        CHECK(net.notes() == notes);
        CHECK(net.profile(false).size() == net.nodes().size());
    }
}

TEST_CASE("a callback that throws ends a training; its checkpoints are there", "[interruption]") {
    const Folder folder;
    TrainCall call = training_in(folder);
    call.progress = [](const TrainProgress& progress) {
        if (progress.epoch == 2 && progress.batch == 3) throw Stop{};
    };
    const Context host("cpu");
    CHECK_THROWS_AS(train(host, call), Stop);
    call.progress = nullptr;
    call.resume = folder.file("out") + "/checkpoint_1.h5";
    CHECK(train(host, call).epochs == 2);
}

TEST_CASE("a callback that throws while the report is made ends a training", "[interruption]") {
    // As Python's KeyboardInterrupt, which is a std::exception, too.
    struct Interrupted : std::exception {};
    const Folder folder;
    TrainCall call = training_in(folder);
    bool profiled = false;
    call.planning = [&](std::string_view what, int, int) {
        if (!what.starts_with("profiling")) return;
        profiled = true;
        throw Interrupted();
    };
    CHECK_THROWS_AS(train(Context("cpu"), call), Interrupted);
    CHECK(profiled);
}

TEST_CASE("a run that is asked to stop while the report is made saves and stops",
          "[interruption]") {
    const Folder folder;
    TrainCall call = training_in(folder);
    bool stops = false;
    call.planning = [&](std::string_view what, int, int) {
        stops = stops || what.starts_with("profiling");
    };
    call.request = [&] { return stops ? TrainRequest::stop : TrainRequest::go_on; };
    const TrainResult result = train(Context("cpu"), call);
    CHECK(stops);
    CHECK_FALSE(result.finished);
    CHECK(result.epochs == 1);
    CHECK(std::filesystem::exists(result.checkpoint));
}

TEST_CASE("a training takes its configuration as a text", "[interruption]") {
    const Folder folder;
    write_training_set(folder);
    std::ifstream file(folder.file("train.json"));
    std::ostringstream text;
    text << file.rdbuf();
    TrainCall call{.out = folder.file("out"), .replace = true};
    const Context host("cpu");
    check_error(ErrorKind::invalid_argument, {"file", "text"}, [&] { train(host, call); });
    call.config_text = text.str();
    const TrainResult from_text = train(host, call);
    call.config_text.clear();
    call.config = folder.file("train.json");
    CHECK(train(host, call).train_loss == from_text.train_loss);
    call.config_text = text.str();
    check_error(ErrorKind::invalid_argument, {"file", "text"}, [&] { train(host, call); });
    call.config.clear();
    call.config_text = "{\"nt\": 1}";
    check_error(ErrorKind::format, {"configuration:1", "nt"}, [&] { train(host, call); });
}

// SPDX-License-Identifier: MIT
// Weights files: saving and loading preserves all bits, and failures leave the file and the net
// unchanged.
#include "formats/hdf5_file.hpp"
#include "net/support.hpp"

#include <chrono>
#include <fstream>
#include <thread>

#include <sys/resource.h>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// During its lifetime no file may grow beyond this size, which has the effect of a full disk.
class FileLimit {
  public:
    explicit FileLimit(rlim_t bytes) {
        getrlimit(RLIMIT_FSIZE, &before_);
        rlimit limit = before_;
        limit.rlim_cur = bytes;
        REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

  private:
    rlimit before_{};
};

std::size_t files_in(const Folder& folder) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
        count += entry.exists();
    return count;
}

}  // namespace

TEST_CASE("weights that are saved and loaded give the same bits", "[weights]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        Net net = make_net(device, small_network, training());
        Solver solver(net, {});
        for (unsigned step = 0; step < 3; ++step) {
            feed_small_network(net, step);
            solver.step();
        }
        net.save_weights(folder.file("w.h5"));
        for (const Mode mode : {Mode::inference, Mode::evaluation, Mode::training}) {
            Net copied = make_net(device, small_network, with_mode(mode));
            copy_params(net, copied);
            Net loaded = make_net(device, small_network, with_mode(mode));
            feed_small_network(loaded, 8);
            loaded.forward();  // other weights are packed
            loaded.load_weights(folder.file("w.h5"));
            CHECK((all_bits(loaded) == all_bits(net)));
            if (mode == Mode::training) continue;
            feed_small_network(copied, 9);
            feed_small_network(loaded, 9);
            copied.forward();
            loaded.forward();
            CHECK((bits(copied.output("scores")) == bits(loaded.output("scores"))));
        }
    }
}

TEST_CASE("weights in blocks are saved with the name of their type", "[weights]") {
    const auto network = [](const std::string& type) {
        return R"({"inputs": [{"name": "rows", "shape": [3], "dtype": "int"}], "outputs": ["y"], "operators": [
            {"name": "table", "type": "Embedding", "inputs": ["rows"], "outputs": ["x"], "params": ["table"],
             "options": {"num_embeddings": 4, "embedding_dim": 32, "blocks": ")" +
               type + R"("}},
            {"name": "product", "type": "InnerProduct", "inputs": ["x"], "outputs": ["y"], "params": ["table"],
             "options": {"outputs": 4, "bias": false, "blocks": ")" +
               type + R"("}}]})";
    };
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        const std::string path = folder.file("w.h5");
        HostTensor table{Shape{4, 64}, DType::u8, std::vector<std::byte>(256)};
        for (std::size_t i = 0; i < 256; ++i)
            table.data[i] = static_cast<std::byte>(i % 2 ? 0x30 + i / 64 : i);
        Net net = make_net(device, network("f16"), with_mode(Mode::inference));
        net.write_params({{"table", table}});
        net.save_weights(path);
        const Hdf5Reader file(path);
        CHECK(file.attribute("table", "dtype") == Attr(std::string("f16")));
        CHECK(file.attribute("table", "shape") == Attr(Ints{4, 32}));
        Net copied = make_net(device, network("f16"), with_mode(Mode::inference));
        copied.load_weights(path);
        CHECK(copied.read_param("table").data == table.data);
        Net other = make_net(device, network("bf16"), with_mode(Mode::inference));
        check_error(ErrorKind::format, {"table", "blocks of f16", "bf16"},
                    [&] { other.load_weights(path); });
    }
}

TEST_CASE("weights go from device to device", "[weights]") {
    const Folder folder;
    std::map<std::string, Bytes> first;
    for (const Context& device : test_devices()) {
        INFO("on " << device.info().name);
        Net net = make_net(device, small_network);
        if (first.empty()) {
            net.initialize("he");
            first = all_bits(net);
            net.save_weights(folder.file("w.h5"));
        }
        net.load_weights(folder.file("w.h5"));
        CHECK((all_bits(net) == first));
        net.initialize("he");
        CHECK((all_bits(net) == first));
    }
}

TEST_CASE("a save that fails leaves the earlier file whole", "[weights]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        const std::string path = folder.file("w.h5");
        Net net = make_net(device, small_network, training());
        Solver solver(net, {});
        feed_small_network(net, 0);
        solver.step();
        for (const bool checkpoint : {false, true}) {
            INFO((checkpoint ? "a checkpoint" : "weights"));
            const auto save = [&](const std::string& to) {
                checkpoint ? solver.save_checkpoint(to) : net.save_weights(to);
            };
            save(path);
            const std::string before = contents(path);
            REQUIRE(before.size() > 1000);
            solver.step();
            // The disk is full from the start, or after some parameters have been written.
            for (const rlim_t room : {8192, 256 * 1024 + 6000}) {
                {
                    const FileLimit full(room);
                    check_error(ErrorKind::io, {"'" + path + "'"}, [&] { save(path); });
                }
                CHECK((contents(path) == before));
                CHECK(files_in(folder) == 1);
            }
            check_error(ErrorKind::io, {"missing", "folder does not exist"},
                        [&] { save(folder.file("missing/w.h5")); });
            check_error(ErrorKind::io, {folder.path().string(), "folder"},
                        [&] { save(folder.path().string()); });
            // The net keeps working, and the next save succeeds.
            solver.step();
            save(path);
            CHECK((contents(path) != before));
            CHECK(files_in(folder) == 1);
        }
    }
}

TEST_CASE("the same state is saved as the same bytes", "[weights]") {
    const Folder folder;
    Net net = make_net(Context("cpu"), small_network, training());
    Solver solver(net, {});
    feed_small_network(net, 0);
    solver.step();
    const auto save = [&](const std::string& name) {
        net.save_weights(folder.file(name + ".h5"));
        solver.save_checkpoint(folder.file(name + ".checkpoint.h5"), {{"epoch", 1}});
    };
    save("first");
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5 times are in seconds
    save("second");
    for (const char* of : {".h5", ".checkpoint.h5"}) {
        INFO(of);
        CHECK((contents(folder.file(std::string("first") + of)) ==
               contents(folder.file(std::string("second") + of))));
    }
}

TEST_CASE("a file that does not fit changes nothing", "[weights]") {
    std::string wider = small_network;
    wider.replace(wider.find("\"outputs\": 20"), 13, "\"outputs\": 30");
    std::string other = small_network;
    other.replace(other.find("\"hidden\", \"type\""), 8, "\"middle\"");
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        Net net = make_net(device, small_network);
        make_net(device, wider).save_weights(folder.file("wider.h5"));
        make_net(device, other).save_weights(folder.file("other.h5"));
        std::ofstream(folder.file("text.h5")) << "no weights\n";
        const auto before = all_bits(net);
        check_error(ErrorKind::format, {"hidden.0", "[30, 128]", "[20, 128]"},
                    [&] { net.load_weights(folder.file("wider.h5")); });
        check_error(ErrorKind::not_found, {"hidden.0", "other.h5"},
                    [&] { net.load_weights(folder.file("other.h5")); });
        check_error(ErrorKind::not_found, {"none.h5"},
                    [&] { net.load_weights(folder.file("none.h5")); });
        check_error(ErrorKind::format, {"text.h5"},
                    [&] { net.load_weights(folder.file("text.h5")); });
        CHECK((all_bits(net) == before));
        // If requested, parameters that the file lacks are initialised.
        Net filled = make_net(device, small_network);
        filled.load_weights(folder.file("other.h5"), true);
        CHECK((bits(filled.param("hidden.0")) == before.at("hidden.0")));
        feed_small_network(net, 0);
        net.forward();
        CHECK(net.output("loss").to_floats().size() == 1);
    }
}

// SPDX-License-Identifier: MIT
// When processes compile and when threads do, and the messages between processes.
#include "runtime/compile_ahead.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/cache_folder.hpp"
#include "runtime/compile_messages.hpp"
#include "runtime/compile_program.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

using namespace dlprim;
using testing::Variable;
namespace fs = std::filesystem;
using std::chrono::milliseconds;

namespace {

class FakeTarget : public CompileTarget {
  public:
    explicit FakeTarget(const fs::path& folder) : disk_(folder) {}
    const DeviceInfo& device() const noexcept override { return info_; }
    const std::string& device_key() const noexcept override { return key_; }
    const BinaryCache& disk() const noexcept override { return disk_; }
    std::uint64_t device_memory() const noexcept override { return memory; }
    std::uint64_t memory = std::uint64_t{64} << 30;

  private:
    DeviceInfo info_;
    std::string key_ = "fake";
    BinaryCache disk_;
};

class FakeProgram : public PendingProgram {
  public:
    explicit FakeProgram(const CompileTarget& target) : target_(target) {}
    bool compiled() const noexcept override { return false; }
    void compile_now() const override {}
    const ProgramSource& text() const noexcept override { return text_; }
    const std::string& text_hash() const override { return text_.name; }
    const CompileTarget* target() const override { return &target_; }

  private:
    const CompileTarget& target_;
    ProgramSource text_;
};

PendingPrograms programs_of(const CompileTarget& target, int count) {
    return PendingPrograms(static_cast<std::size_t>(count), std::make_shared<FakeProgram>(target));
}

/// How many processes are to compile; 0: threads are.
int processes(const CompileTarget& target, int programs, int threads) {
    const auto crew = crew_for(programs_of(target, programs), threads);
    return crew ? crew->processes : 0;
}

}  // namespace

TEST_CASE("many programs are for processes") {
    const CacheFolder folder;
    const Variable executable("DLPRIM_COMPILE_PROGRAM", DLPRIM_COMPILE_EXECUTABLE);
    FakeTarget device(folder.path());
    const int most = processes(device, 64, 16);
    CHECK(most >= 1);  // what the host's memory allows
    CHECK(most <= 12);
    CHECK(processes(device, 16, 16) == std::min(4, most));
    CHECK(processes(device, 64, 3) == std::min(3, most));
    device.memory = std::uint64_t{5} << 30;  // they take some of it
    CHECK(processes(device, 64, 16) == std::min(2, most));

    SECTION("not where programs are few") {
        CHECK(processes(device, 15, 16) == 0);
        CHECK(processes(device, 0, 16) == 0);
    }
    SECTION("not where they are turned off, or are not there") {
        const Variable off("DLPRIM_COMPILE_PROCESSES", "0");
        CHECK(processes(device, 64, 16) == 0);
    }
    SECTION("not without the executable") {
        for (const char* file : {"/nowhere/dlprim_compile", "/etc/passwd", "/"}) {
            const Variable other("DLPRIM_COMPILE_PROGRAM", file);
            CHECK(processes(device, 64, 16) == 0);
        }
    }
    SECTION("not without a folder to write to") {
        CHECK(processes(FakeTarget("/proc/nowhere"), 64, 16) == 0);
    }
    SECTION("as many as the environment says") {
        const Variable five("DLPRIM_COMPILE_PROCESSES", "5");
        CHECK(processes(FakeTarget(folder.path() / "other"), 64, 2) == 5);
        CHECK(processes(device, 3, 2) == 3);
    }
    SECTION("which has to be a number") {
        for (const char* text : {"-1", "many", "2x", "1025"}) {
            const Variable wrong("DLPRIM_COMPILE_PROCESSES", text);
            CHECK_THROWS_AS(processes(device, 64, 16), Error);
        }
    }
}

TEST_CASE("on two cores threads compile, and the disk is not touched") {
    const CacheFolder folder;
    const Variable executable("DLPRIM_COMPILE_PROGRAM", DLPRIM_COMPILE_EXECUTABLE);
    const FakeTarget device(folder.path() / "kernels");
    for (const int threads : {1, 2}) CHECK(processes(device, 64, threads) == 0);
    CHECK_FALSE(fs::exists(folder.path() / "kernels"));
}

TEST_CASE("the executable is found beside what was built") {
    const auto found = compile_program();
    if (found) CHECK(found->filename() == "dlprim_compile");
    const Variable given("DLPRIM_COMPILE_PROGRAM", DLPRIM_COMPILE_EXECUTABLE);
    REQUIRE(compile_program());
    CHECK(*compile_program() == fs::path(DLPRIM_COMPILE_EXECUTABLE));
}

TEST_CASE("an executable that anybody can replace is not run") {
    const CacheFolder folder;
    const fs::path file = folder.path() / "libexec" / "dlprim" / "dlprim_compile";
    fs::create_directories(file.parent_path());
    write_file_atomically(file, "");
    const fs::path places[] = {file, file.parent_path(), file.parent_path().parent_path()};
    for (const fs::path& place : places) fs::permissions(place, fs::perms::owner_all);
    CHECK(is_protected(file, ::geteuid()));
    for (const fs::path& place : places) {
        INFO(place);
        fs::permissions(place, fs::perms::others_write, fs::perm_options::add);
        CHECK_FALSE(is_protected(file, ::geteuid()));
        fs::permissions(place, fs::perms::owner_all);
    }
    CHECK_FALSE(is_protected(folder.path() / "nothing", ::geteuid()));
}

TEST_CASE("messages arrive whole or not at all") {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    MessageSocket here(ends[0]), there(ends[1]);
    const auto soon = [] { return std::chrono::steady_clock::now() + milliseconds(50); };

    const Message message{"", std::string(3'000'000, 'x'), std::string("a\0b", 3)};
    std::thread sender([&] { CHECK(here.send(message)); });
    const auto received = there.receive();
    sender.join();
    REQUIRE(received);
    CHECK(*received == message);

    CHECK_FALSE(there.receive(soon()));       // nothing was sent
    CHECK_FALSE(here.send(message, soon()));  // nobody reads
    const std::atomic<bool> stop{true};
    CHECK_FALSE(here.receive(MessageSocket::Deadline::max(), &stop));
    there.close();
    CHECK_FALSE(here.send({"anybody there"}));  // which ends no process by a signal
    CHECK_FALSE(here.receive());
}

TEST_CASE("what is no message is none") {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    MessageSocket here(ends[0]);
    const std::string nonsense = "something that a driver prints";
    CHECK(::write(ends[1], nonsense.data(), nonsense.size()) ==
          static_cast<ssize_t>(nonsense.size()));
    CHECK_FALSE(here.receive());
    ::close(ends[1]);
}

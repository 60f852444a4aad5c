// SPDX-License-Identifier: MIT
// Tests atomic writing of files, and the log hook.
#include "base/env.hpp"
#include "base/input_file.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <dlprim/error.hpp>
#include <dlprim/log.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

using namespace dlprim;
using testing::message_of;
namespace fs = std::filesystem;

TEST_CASE("files are replaced whole") {
    const fs::path folder =
        fs::temp_directory_path() / ("dlprim_files_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    const std::string bytes(100000, '\0');
    write_file_atomically(folder / "a", "old");
    write_file_atomically(folder / "a", bytes);
    CHECK(read_file(folder / "a") == bytes);
    CHECK_THROWS_AS(write_file_atomically(folder / "none" / "a", "x"), Error);
    CHECK_THROWS_AS(read_file(folder / "none"), Error);
    CHECK_THROWS_AS(read_file(folder), Error);
    int files = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++files;
    CHECK(files == 1);
    fs::remove_all(folder);
}

TEST_CASE("what is no file is neither read nor replaced, nor waited for") {
    const fs::path folder =
        fs::temp_directory_path() / ("dlprim_no_files_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    (folder / "socket").string().copy(name.sun_path, sizeof(name.sun_path) - 1);
    const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0);
    fs::create_symlink("fifo", folder / "link");
    ::alarm(60);
    for (const auto& [path, what] : {std::pair<fs::path, std::string>{folder / "fifo", "a FIFO"},
                                     {folder / "link", "a FIFO"},
                                     {folder / "socket", "a socket"},
                                     {folder, "a directory"},
                                     {"/dev/null", "a device"}}) {
        INFO(path);
        CHECK(message_of(ErrorKind::io, [&, &at = path] { read_file(at); }) ==
              "'" + path.string() + "' is not a file that can be read but " + what);
        CHECK(message_of(ErrorKind::io, [&, &at = path] { write_file_atomically(at, "x"); }) ==
              "cannot write '" + path.string() + "': it is not a file but " + what);
    }
    ::alarm(0);
    ::close(listener);
    CHECK(fs::is_fifo(folder / "fifo"));
    fs::remove_all(folder);
}

TEST_CASE("files are read in parts, up to a limit, and known to be unchanged") {
    const fs::path path = fs::temp_directory_path() / ("dlprim_part_" + std::to_string(::getpid()));
    write_file_atomically(path, std::string(1000, 'x'));
    CHECK(read_file(path, 1000).size() == 1000);
    CHECK_THROWS_AS(read_file(path, 999), Error);
    CHECK_FALSE(read_file("/proc/self/status").empty());  // a file without a size
    CHECK_THROWS_AS(read_file("/proc/self/status", 10), Error);
    const InputFile file(path.string());
    char bytes[8];
    CHECK(file.read(996, bytes, 8) == 4);
    CHECK(file.is_unchanged());
    fs::resize_file(path, 999);
    CHECK_FALSE(file.is_unchanged());
    fs::remove(path);
    CHECK_THROWS_AS(InputFile(path.string()), Error);
}

TEST_CASE("the cache folder follows the environment") {
    const auto before = env("DLPRIM_CACHE_DIR");
    ::setenv("DLPRIM_CACHE_DIR", "/somewhere", 1);
    CHECK(cache_dir() == fs::path("/somewhere"));
    ::setenv("DLPRIM_CACHE_DIR", "", 1);
    ::setenv("XDG_CACHE_HOME", "/xdg", 1);
    CHECK(cache_dir() == fs::path("/xdg/dlprim"));
    if (before) ::setenv("DLPRIM_CACHE_DIR", before->c_str(), 1);
}

TEST_CASE("log lines reach the receiver") {
    std::string got;
    set_log([&](LogLevel level, std::string_view line) {
        if (level == LogLevel::warning) got = line;
    });
    log(LogLevel::info, "not this");
    log(LogLevel::warning, "this");
    set_log({});
    log(LogLevel::warning, "nor this");
    CHECK(got == "this");
}

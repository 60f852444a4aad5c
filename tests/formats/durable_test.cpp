// SPDX-License-Identifier: MIT
// What a file of weights asks of the system so that it survives a power failure: its bytes are
// written before it gets its name, and its name is written before commit() returns.
#include "formats/hdf5_file.hpp"
#include "support/catch.hpp"

#include <sys/syscall.h>
#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

using namespace dlprim;

namespace {

/// Calls in their order: "sync PATH", "rename PATH".
std::vector<std::string>* recorded = nullptr;

}  // namespace

// These take the places of the C library's.
extern "C" int fsync(int descriptor) {
    if (recorded != nullptr) {
        const auto link = "/proc/self/fd/" + std::to_string(descriptor);
        recorded->push_back("sync " + std::filesystem::read_symlink(link).string());
    }
    return static_cast<int>(syscall(SYS_fsync, descriptor));
}

extern "C" int rename(const char* from, const char* to) noexcept {
    if (recorded != nullptr) recorded->push_back(std::string("rename ") + to);
    return static_cast<int>(syscall(SYS_renameat2, -100 /* AT_FDCWD */, from, -100, to, 0));
}

TEST_CASE("a file of weights, its name and nothing else are on disk after commit()") {
    const auto folder = std::filesystem::canonical(std::filesystem::temp_directory_path()) /
                        ("dlprim-durable-test-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const std::string path = (folder / "w.h5").string();
    std::vector<std::string> calls;
    {
        Hdf5Writer file(path);
        const float value = 1;
        file.write("w", Shape{1}, DType::f32, &value);
        recorded = &calls;
        file.commit();
        recorded = nullptr;
    }
    REQUIRE(calls.size() == 3);
    CHECK(calls[0].starts_with("sync " + path + "."));
    CHECK(calls[1] == "rename " + path);
    CHECK(calls[2] == "sync " + folder.string());
    const std::filesystem::directory_iterator files(folder);
    CHECK(std::distance(begin(files), end(files)) == 1);
    std::filesystem::remove_all(folder);
}

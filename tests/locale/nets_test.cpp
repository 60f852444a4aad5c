// SPDX-License-Identifier: MIT
// Networks have the same plans and bits in every locale that a program may set.
#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace dlprim;

namespace {

struct Outcome {
    int code = -1;
    std::string text;
};

Outcome run(const std::string& command) {
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return outcome;
    char block[4096];
    for (std::size_t got; (got = std::fread(block, 1, sizeof block, pipe)) > 0;)
        outcome.text.append(block, got);
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
}

/// All networks of the repository on the host; the smaller ones with Dropout are also trained. On
/// other devices, compiling all of them would take an hour, so there it is only the network whose
/// kernels have the most sizes and strides of four digits.
std::string nets_for(const Context& device) {
    const std::string own = DLPRIM_NETS, more = DLPRIM_MORE_NETS;
    std::string nets = " --train '" + own + "/mobilenet_v2.json'";
    if (device.info().kind != DeviceKind::host) return nets;
    for (const char* name : {"efficientnet_b0", "mobilenet_v3_small", "squeezenet1_0"})
        nets += " --train '" + more + '/' + name + ".json'";
    for (const std::string& folder : {own, more})
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.path().extension() == ".json" &&
                nets.find('/' + entry.path().filename().string()) == std::string::npos)
                nets += " '" + entry.path().string() + "'";
    return nets;
}

}  // namespace

TEST_CASE("networks have the same bits in every locale") {
    const auto folder =
        std::filesystem::temp_directory_path() / ("dlprim_nets_" + std::to_string(::getpid()));
    for (const Context& device : testing::test_devices()) {
        std::filesystem::create_directories(folder);
        const std::string nets = nets_for(device);
        const auto in = [&](const std::string& locale) {
            return run(cat("'", DLPRIM_LOCALE_NETS, "' '", device.info().id, "' '", locale, "' '",
                           folder.string(), "'", nets));
        };
        const Outcome classic = in("classic");
        INFO(device.info().name);
        REQUIRE(classic.code == 0);
        REQUIRE(!classic.text.empty());
        for (const char* locale : {"comma groups", "point groups", "setlocale"}) {
            const Outcome found = in(locale);
            if (found.code == 77) {
                std::cout << "no C locale of Germany here: " << locale << " was not tried\n";
                continue;
            }
            INFO(locale);
            CHECK(found.code == 0);
            CHECK(found.text == classic.text);
        }
        std::filesystem::remove_all(folder);
    }
}

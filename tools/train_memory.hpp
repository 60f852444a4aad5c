// SPDX-License-Identifier: MIT
// What a training step of a configuration will take of the device's memory.
#pragma once

#include "memory_report.hpp"

#include <dlprim/dlprim.hpp>

#include <string>

namespace CLI {
class App;
}

namespace dlprim::tools {

/// Options --memory and --memory-html.
struct MemoryOptions {
    bool text = false;
    std::string html;
};
void add_memory_options(CLI::App& app, MemoryOptions& options);

/// Plans the configuration's step as TrainCall says, and reports its memory as the options ask;
/// does nothing without them. A configuration that cannot be read is left to train(), which says
/// what is wrong. Throws Error as a Net and its plan do.
void report_training_memory(const Context& context, const TrainCall& call,
                            const MemoryOptions& options);

}  // namespace dlprim::tools

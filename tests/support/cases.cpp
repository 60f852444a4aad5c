// SPDX-License-Identifier: MIT
// Reads the files of the table of cases.
#include "support/cases.hpp"

#include "base/env.hpp"

#include <algorithm>
#include <filesystem>

namespace dlprim::testing {

std::vector<Case> load_cases(const std::string& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<Case> cases;
    for (const auto& path : files)
        for (Case& one : read_cases(read_file(path, 1 << 24), path.filename().string()))
            cases.push_back(std::move(one));
    return cases;
}

}  // namespace dlprim::testing

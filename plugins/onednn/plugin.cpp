// SPDX-License-Identifier: MIT
// A plugin of engines for the host by oneDNN: convolutions, products and pooling.
#include "kind.hpp"

#include <algorithm>
#include <exception>

namespace {

std::string version() {
    const dnnl_version_t* const v = dnnl_version();
    return "oneDNN " + std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' +
           std::to_string(v->patch);
}

const dlprim_engines& plugin() {
    static const std::string library = version();
    static const std::vector<const dlprim_engine*> engines = [] {
        std::vector<const dlprim_engine*> all;
        for (const auto& some : {onednn::convolutions(), onednn::products(), onednn::poolings()})
            all.insert(all.end(), some.begin(), some.end());
        return all;
    }();
    static const dlprim_engines made{DLPRIM_ENGINE_ABI, library.c_str(), engines.data(),
                                     engines.size()};
    return made;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const dlprim_engines* dlprim_engine_plugin(
    dlprim_engine_message message) {
    return succeeds(message, [] { onednn::processor(); }) ? &plugin() : nullptr;
}

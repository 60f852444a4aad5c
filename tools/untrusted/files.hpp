// SPDX-License-Identifier: MIT
// InputFiles: how a command reads HDF5 files, pictures and ONNX models: itself, or, with
// --untrusted, by a process of its own, where a crash of a library that reads them is an Error.
//
// Network JSON is always read by the command itself.
#pragma once

#include <dlprim/dlprim.hpp>

#include <map>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace dlprim::tools {

class InputFiles {
  public:
    /// Adds --untrusted.
    void add_option(CLI::App& app);

    // As the library's calls of these names. With --untrusted they throw Error(io), too, if the
    // process ends, takes too long or too much memory, and Error(format) for what it answers.

    std::map<std::string, HostTensor> load_tensors(const std::string& path) const;
    Image read_image(const std::string& path, int channels) const;
    std::optional<Preprocessing> read_preprocessing(const std::string& path) const;
    void load_weights(Net& net, const std::string& path, bool missing_ok = false) const;
    /// As tools::open_net(). With --untrusted an ONNX model becomes a network of the library's own
    /// and its weights. NetOptions::input_shapes may then hold names that are no inputs of it.
    Net open_net(const Context& context, const std::string& path, const NetOptions& options) const;

    bool untrusted() const { return untrusted_; }

  private:
    bool untrusted_ = false;
};

}  // namespace dlprim::tools

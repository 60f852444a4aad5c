// SPDX-License-Identifier: MIT
// Where the values of a net's parameters come from: they are asked for again when a parameter is
// needed whose memory was let go.
#pragma once

#include "formats/hdf5_file.hpp"
#include "graph/graph.hpp"
#include "runtime/host_pool.hpp"

#include <dlprim/tensor_file.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

class ParamSource {
  public:
    virtual ~ParamSource() = default;
    /// The parameter's values in its own type, the same at every call.
    virtual void read(const Value& parameter, std::vector<std::byte>& data) = 0;
    /// Nothing will be read for a while.
    virtual void close() {}
};

/// initial_values() of parameters.
class InitialValues : public ParamSource {
  public:
    InitialValues(std::string_view method, std::uint64_t seed, HostPool& pool)
        : method_(method), seed_(seed), pool_(pool) {}
    void read(const Value& parameter, std::vector<std::byte>& data) override;

  private:
    std::string method_;
    std::uint64_t seed_;
    HostPool& pool_;
};

/// Values in host memory.
class HostValues : public ParamSource {
  public:
    /// `missing` (may be null) gives what `values` lack. `read_again`: they stay behind close().
    HostValues(std::map<std::string, HostTensor> values, std::shared_ptr<ParamSource> missing,
               bool read_again)
        : values_(std::move(values)), missing_(std::move(missing)), read_again_(read_again) {}
    /// Throws Error naming the parameter: missing, of another shape, type or size.
    void check(const Value& parameter) const;
    /// After check().
    void read(const Value& parameter, std::vector<std::byte>& data) override;
    void close() override {
        if (!read_again_) values_.clear();
    }

  private:
    std::map<std::string, HostTensor> values_;
    std::shared_ptr<ParamSource> missing_;
    bool read_again_;
};

/// A weights file. HDF5 has it open only until close(), for its locks keep others from writing; a
/// descriptor stays, by which it is read when the file has been renamed, removed or replaced. HDF5
/// opens it again by that descriptor, so that it is always the file that was checked.
class WeightsFile : public ParamSource {
  public:
    /// `missing` (may be null) gives what the file lacks. Throws as Hdf5Reader.
    WeightsFile(const std::string& path, std::shared_ptr<ParamSource> missing);
    /// Throws Error naming the parameter: missing, of another shape or type.
    void check(const Value& parameter);
    /// After check(). Throws Error(io) where the file has been written to since.
    void read(const Value& parameter, std::vector<std::byte>& data) override;
    void close() override { reader_.reset(); }

  private:
    /// Open; nullptr where the file is not at its path any more.
    Hdf5Reader* reader();

    std::shared_ptr<const InputFile> file_;
    std::shared_ptr<ParamSource> missing_;
    std::optional<Hdf5Reader> reader_;
    std::set<std::string> lacking_;                   ///< parameters that it has no values for
    std::map<std::string, std::uint64_t> positions_;  ///< of values in the file as in memory
};

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// The source of a net's parameter values. They are read again when a parameter is needed whose
// memory was released.
#pragma once

#include "formats/hdf5_file.hpp"
#include "graph/graph.hpp"
#include "runtime/host_pool.hpp"

#include <dlprim/tensor.hpp>
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
    /// Reads the parameter's values in its own type. Every call returns the same values.
    virtual void read(const Value& parameter, std::vector<std::byte>& data) = 0;
    /// Tells values apart that nets of several sources read: equal texts, equal values.
    virtual std::string identity(const Value& parameter) { return parameter.name; }
    /// The parameter's memory on a device where the source has its own, which nobody writes to.
    /// Otherwise undefined: the caller allocates memory and reads the values into it.
    virtual Tensor shared(const Context&, const Value&) { return {}; }
    /// Whether the parameter never changes and stays in the source, as in the file of a model, so
    /// that checkpoints need not hold it.
    virtual bool keeps(const Value&) const { return false; }
    /// Called when nothing will be read for a while.
    virtual void close() {}
};

/// Compares the names of a net's parameters with those that a file or a caller gives; `source`
/// names it in messages. Throws Error(not_found) with both lists for parameters that it lacks,
/// unless `missing_ok`. Logs a warning that lists what the net does not have; what checkpoints hold
/// besides parameters is not meant.
void compare_names(const std::vector<std::string>& wanted, const std::vector<std::string>& given,
                   const std::string& source, bool missing_ok);
/// Whether a dataset of that name is what a checkpoint holds besides parameters.
bool is_checkpoint_state(std::string_view name);

/// Parameters from initial_values().
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
    /// `missing` (may be null) provides the parameters that `values` lacks. `read_again`: keep the
    /// values after close().
    HostValues(std::map<std::string, HostTensor> values, std::shared_ptr<ParamSource> missing,
               bool read_again)
        : values_(std::move(values)), missing_(std::move(missing)), read_again_(read_again) {}
    /// Throws Error, which names the parameter, if it is missing or of another shape, type or size.
    void check(const Value& parameter) const;
    /// Call check() first.
    void read(const Value& parameter, std::vector<std::byte>& data) override;
    void close() override {
        if (!read_again_) values_.clear();
    }

  private:
    std::map<std::string, HostTensor> values_;
    std::shared_ptr<ParamSource> missing_;
    bool read_again_;
};

/// Values of a weights file that somebody else has read, by the rules of WeightsFile: names that
/// the net does not have are dropped, and a scalar may have shape [] or [1].
std::map<std::string, HostTensor> fitted(std::map<std::string, HostTensor> values,
                                         const std::map<std::string, const Value*>& parameters,
                                         const std::string& source, bool missing_ok);

/// A weights file. HDF5 keeps it open only until close(), because its locks prevent others from
/// writing. A descriptor stays open, so that values can be read even if the file was renamed,
/// removed or replaced. HDF5 opens the file again through that descriptor, so it is always the file
/// that was checked.
class WeightsFile : public ParamSource {
  public:
    /// `missing` (may be null) provides the parameters that the file lacks: with `missing_ok` any,
    /// and else those that it keeps. Throws like Hdf5Reader.
    WeightsFile(const std::string& path, std::shared_ptr<ParamSource> missing, bool missing_ok);
    /// Throws Error, which names the parameters, if some are missing or of another shape or type.
    void check(const std::map<std::string, const Value*>& parameters);
    bool keeps(const Value& parameter) const override {
        return lacking_.count(parameter.name) && missing_->keeps(parameter);
    }
    /// Call check() first. Throws Error(io) if the file was written to since.
    void read(const Value& parameter, std::vector<std::byte>& data) override;
    void close() override { reader_.reset(); }

  private:
    void check(const Value& parameter);
    /// The open reader, or nullptr if the file is no longer at its path.
    Hdf5Reader* reader();

    std::shared_ptr<const InputFile> file_;
    std::shared_ptr<ParamSource> missing_;
    bool missing_ok_;
    std::optional<Hdf5Reader> reader_;
    std::set<std::string> lacking_;                   ///< parameters that the file lacks
    std::map<std::string, std::uint64_t> positions_;  ///< of values that are stored as in memory
};

}  // namespace dlprim

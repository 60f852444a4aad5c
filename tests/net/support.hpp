// SPDX-License-Identifier: MIT
// What the tests of networks share: a section per device, host data, bits, temporary folders.
#pragma once

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/environment.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"
#include "support/warnings.hpp"

#include <dlprim/dlprim.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::testing {

/// Runs the following code in a section of its own on every device under test.
#define ON_EVERY_DEVICE(device)                                           \
    for (const dlprim::Context& device : dlprim::testing::test_devices()) \
    DYNAMIC_SECTION("on " << device.info().id << " (" << device.info().name << ")")

constexpr ErrorKind invalid = ErrorKind::invalid_argument;

/// A net whose parameters have their initial values.
Net make_net(const Context& device, std::string_view json, const NetOptions& options = {});

/// A tensor of one dimension with these values, and the values of one.
template <typename T>
Tensor tensor_of(const Context& device, DType dtype, const std::vector<T>& values) {
    Tensor made(device, Shape{static_cast<std::int64_t>(values.size())}, dtype);
    made.copy_from_host(values.data(), values.size() * sizeof(T));
    return made;
}
template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
    std::vector<T> values(static_cast<std::size_t>(tensor.shape().numel()));
    REQUIRE(tensor.bytes() == values.size() * sizeof(T));
    tensor.copy_to_host(values.data(), tensor.bytes());
    return values;
}

/// Numbers in [low, high), which are the same everywhere for a given seed.
std::vector<float> random_floats(std::size_t count, unsigned seed, double low = -1,
                                 double high = 1);
inline std::vector<double> doubles(const std::vector<float>& values) {
    return {values.begin(), values.end()};
}
void set_floats(Net& net, const std::string& input, const std::vector<float>& values);
void set_labels(Net& net, const std::string& input, const std::vector<std::int32_t>& values);

using Bytes = std::vector<std::byte>;
Bytes bits(const Tensor& tensor);
/// The bits of every parameter, by name.
std::map<std::string, Bytes> all_bits(Net& net);
/// Copies the bits of every parameter from `from` to `to`.
void copy_params(Net& from, Net& to);

/// Checks that elements are within `relative` of the largest magnitude of `expected`.
void check_close(const std::vector<float>& found, const std::vector<double>& expected,
                 double relative);

NetOptions training(std::uint64_t seed = 1);
NetOptions with_mode(Mode mode);

/// Convolution, BatchNorm, pooling, dropout, two inner products: data [4, 3, 8, 8], label [4].
extern const char* const small_network;
/// Feeds the batch of that number to small_network.
void feed_small_network(Net& net, unsigned number);

}  // namespace dlprim::testing

// SPDX-License-Identifier: MIT
// The random numbers of "ocl": Philox, keyed by a seed and an offset that counts up with every use.
#pragma once

#include "common.hpp"

#include <ATen/core/Generator.h>

#include <utility>

namespace dlprim_torch {

class Generator final : public c10::GeneratorImpl {
  public:
    explicit Generator(c10::DeviceIndex device);
    static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

    void set_current_seed(std::uint64_t seed) override;
    std::uint64_t current_seed() const override { return seed_; }
    std::uint64_t seed() override;
    void set_offset(std::uint64_t offset) override { offset_ = offset; }
    std::uint64_t get_offset() const override { return offset_; }
    void set_state(const c10::TensorImpl& state) override;
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

    /// The seed and the step for one operator; the step counts up. The caller holds mutex_.
    std::pair<std::uint64_t, std::uint64_t> next() { return {seed_, offset_++}; }

  private:
    Generator* clone_impl() const override;

    std::uint64_t seed_ = c10::default_rng_seed_val;
    std::uint64_t offset_ = 0;
};

/// The generator of a device that operators use which are given none.
const at::Generator& default_generator(int device);

/// Seed and step for one call of an operator that draws numbers on `device`, from the generator
/// that it was given or the device's own:
///   const auto [seed, step] = draw(generator, self.device().index());
std::pair<std::uint64_t, std::uint64_t> draw(const std::optional<at::Generator>& generator,
                                             int device);

}  // namespace dlprim_torch

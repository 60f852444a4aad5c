// SPDX-License-Identifier: MIT
// What a plugin of engines is told (include/dlprim/engine_plugin.h), made of this library's values.
#pragma once

#include "engine/problem.hpp"

#include <dlprim/engine_plugin.h>
#include <dlprim/context.hpp>

#include <deque>
#include <string>
#include <vector>

namespace dlprim {

/// A problem as a plugin sees it. It points into `problem`, which must outlive it.
class PluginProblem {
  public:
    explicit PluginProblem(const Problem& problem);
    PluginProblem(const PluginProblem&) = delete;
    PluginProblem& operator=(const PluginProblem&) = delete;
    const dlprim_engine_problem* view() const { return &view_; }

  private:
    void add_option(const std::string& name, const Attr& value);
    dlprim_engine_operand operand(const Operand& given);

    std::string key_, precision_;
    std::vector<dlprim_engine_operand> inputs_, outputs_;
    std::vector<dlprim_engine_option> options_;
    std::vector<dlprim_engine_stage> stages_;
    // What these point to; a deque's elements stay where they are.
    std::deque<std::vector<std::int64_t>> integers_;
    std::deque<std::vector<double>> numbers_;
    std::deque<std::vector<const char*>> texts_;
    dlprim_engine_problem view_{};
};

/// The device without handles.
dlprim_engine_device plugin_device(const Traits& traits);

/// A plugin's layout. Throws Error(unsupported), which says what is wrong, if a value of this shape
/// cannot lie so.
Layout layout_of(const dlprim_engine_layout& given, const Shape& shape, bool is_input);

/// Room for a message of a plugin, and what it wrote.
class PluginMessage {
  public:
    dlprim_engine_message room() { return {text_, sizeof text_}; }
    /// The message, or that there is none.
    std::string text() const;

  private:
    char text_[512] = {};
};

}  // namespace dlprim

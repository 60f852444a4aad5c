// SPDX-License-Identifier: MIT
// net_options(): one line per field.
#include "net_options.hpp"

#include "callback.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <map>

namespace dlprim::python {
namespace {

Mode to_mode(std::string_view name) {
    if (name == "inference") return Mode::inference;
    if (name == "evaluation") return Mode::evaluation;
    if (name == "training") return Mode::training;
    throw Error(
        ErrorKind::invalid_argument,
        "mode '" + std::string(name) + "' is none of 'training', 'evaluation' and 'inference'");
}

/// A keyword: which types it accepts, and a function that sets it or returns false on another type.
struct Field {
    const char* takes;
    std::function<bool(NetOptions&, nb::handle)> set;
};

template <typename T>
Field field(T NetOptions::*member, const char* takes) {
    return {takes, [=](NetOptions& options, nb::handle value) {
                return nb::try_cast(value, options.*member);
            }};
}

/// Accepts Python's True and False, and numpy's.
Field flag(bool NetOptions::*member) {
    return {"a bool", [=](NetOptions& options, nb::handle value) {
                const bool known =
                    PyBool_Check(value.ptr()) ||
                    nb::isinstance(value, nb::module_::import_("numpy").attr("bool_"));
                if (known) options.*member = PyObject_IsTrue(value.ptr()) == 1;
                return known;
            }};
}

/// A field that `parse` sets from a name.
template <typename T>
Field named(T NetOptions::*member, T (*parse)(std::string_view)) {
    return {"a string", [=](NetOptions& options, nb::handle value) {
                std::string name;
                if (!nb::try_cast(value, name)) return false;
                options.*member = parse(name);
                return true;
            }};
}

/// A field that `parse` sets from a Python object.
template <typename T>
Field parsed(T NetOptions::*member, const char* takes, bool (*parse)(nb::handle, T&)) {
    return {takes,
            [=](NetOptions& options, nb::handle value) { return parse(value, options.*member); }};
}

bool set_progress(nb::handle value, std::function<void(std::string_view, int, int)>& progress) {
    progress = Callback(value);
    return value.is_none() || PyCallable_Check(value.ptr()) != 0;
}

const std::map<std::string, Field>& fields() {
    static const std::map<std::string, Field> known{
        {"mode", named(&NetOptions::mode, to_mode)},
        {"batch", field(&NetOptions::batch, "an int")},
        {"input_shapes",
         parsed(&NetOptions::input_shapes, "a dict of input names and shapes", to_shapes)},
        {"extra_outputs", field(&NetOptions::extra_outputs, "a list of strings")},
        {"input_gradients", flag(&NetOptions::input_gradients)},
        {"output_gradients", flag(&NetOptions::output_gradients)},
        {"without_losses", flag(&NetOptions::without_losses)},
        {"backward", flag(&NetOptions::backward)},
        {"fuse", flag(&NetOptions::fuse)},
        {"engines", parsed(&NetOptions::engines, "a dict or pairs of strings", to_pairs)},
        {"precision", named(&NetOptions::precision, parse_precision)},
        {"precisions",
         parsed(&NetOptions::precisions, "a dict or pairs of strings", to_precisions)},
        {"keep_parameters", flag(&NetOptions::keep_parameters)},
        {"memory_limit", field(&NetOptions::memory_limit, "an int of at least 0")},
        {"max_plans", field(&NetOptions::max_plans, "an int")},
        {"seed", field(&NetOptions::seed, "an int of at least 0")},
        {"tune_seconds", field(&NetOptions::tune_seconds, "a number of seconds")},
        {"progress",
         parsed(&NetOptions::progress, "a callable of (what, done, total)", set_progress)},
    };
    return known;
}

/// "a float: 2.5". The type alone would not explain an int that is too large.
std::string shown(nb::handle value) {
    if (value.is_none()) return kind_of(value);
    constexpr std::size_t most = 80;
    const std::string text =
        nb::cast<std::string>(nb::object(nb::steal(PyObject_ASCII(value.ptr()))));
    return kind_of(value) + ": " + (text.size() > most ? text.substr(0, most) + "..." : text);
}

}  // namespace

bool to_pairs(nb::handle object, std::vector<std::pair<std::string, std::string>>& pairs) {
    pairs.clear();
    const nb::object items =
        nb::isinstance<nb::dict>(object) ? nb::object(object.attr("items")()) : nb::borrow(object);
    if (!nb::isinstance<nb::iterable>(items)) return false;
    for (const nb::handle item : items) {
        std::pair<std::string, std::string> pair;
        if (!nb::try_cast(item, pair)) return false;
        pairs.push_back(pair);
    }
    return true;
}

bool to_precisions(nb::handle object, std::vector<std::pair<std::string, Precision>>& precisions) {
    std::vector<std::pair<std::string, std::string>> pairs;
    if (!to_pairs(object, pairs)) return false;
    precisions.clear();
    for (const auto& [name, precision] : pairs)
        precisions.emplace_back(name, parse_precision(precision));
    return true;
}

bool to_shapes(nb::handle object, std::map<std::string, Shape>& shapes) {
    if (!nb::isinstance<nb::dict>(object)) return false;
    shapes.clear();
    for (const auto [key, value] : nb::borrow<nb::dict>(object)) {
        std::string name;
        if (!nb::try_cast(key, name)) return false;
        shapes.emplace(name, to_shape(value));
    }
    return true;
}

NetOptions net_options(nb::handle keywords) {
    const auto keys_of = [](const auto& all) {
        std::vector<std::string> names;
        for (const auto& [name, field] : all) names.emplace_back(name);
        return names;
    };
    NetOptions options;
    options.mode = Mode::training;
    options.progress = Callback(nb::none());  // only checks for Ctrl-C
    for (const auto [key, value] : nb::borrow<nb::dict>(keywords)) {
        const auto name = nb::cast<std::string>(key);
        const auto found = fields().find(name);
        if (found == fields().end())
            throw nb::type_error(
                ("Net has no option '" + name + "'" + name_hint(name, keys_of(fields()))).c_str());
        if (!found->second.set(options, value))
            throw nb::type_error(
                (name + " takes " + found->second.takes + ", not " + shown(value)).c_str());
    }
    return options;
}

}  // namespace dlprim::python

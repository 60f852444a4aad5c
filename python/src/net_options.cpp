// SPDX-License-Identifier: MIT
// net_options() and solver_options(): one line per field.
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
bool set_flag(nb::handle value, bool& flag) {
    const bool known = PyBool_Check(value.ptr()) ||
                       nb::isinstance(value, nb::module_::import_("numpy").attr("bool_"));
    if (known) flag = PyObject_IsTrue(value.ptr()) == 1;
    return known;
}

Field flag(bool NetOptions::*member) {
    return {"a bool", [=](NetOptions& options, nb::handle value) {
                return set_flag(value, options.*member);
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

[[noreturn]] void wrong_value(const std::string& name, const char* takes, nb::handle value) {
    throw nb::type_error((name + " takes " + takes + ", not " + shown(value)).c_str());
}

[[noreturn]] void unknown(const char* whose, const std::string& name,
                          const std::vector<std::string>& names) {
    throw nb::type_error(
        (whose + (" has no option '" + name + "'") + name_hint(name, names)).c_str());
}

// Of SolverOptions.

const std::map<std::string, SolverOptions::Kind>& solver_kinds() {
    using Kind = SolverOptions::Kind;
    static const std::map<std::string, Kind> known{
        {"sgd", Kind::sgd}, {"adam", Kind::adam}, {"adamw", Kind::adamw}};
    return known;
}

SolverOptions::Kind to_kind(nb::handle value) {
    std::string name;
    if (!nb::try_cast(value, name)) wrong_value("kind", "a string", value);
    if (const auto found = solver_kinds().find(name); found != solver_kinds().end())
        return found->second;
    throw Error(ErrorKind::invalid_argument,
                "solver '" + name + "' is none of 'sgd', 'adam' and 'adamw'");
}

/// Calls use(name, field) for each but the kind.
template <typename Options, typename Use>
void each_field(Options& o, const Use& use) {
    use("learning_rate", o.learning_rate);
    use("momentum", o.momentum);
    use("nesterov", o.nesterov);
    use("beta1", o.beta1);
    use("beta2", o.beta2);
    use("epsilon", o.epsilon);
    use("weight_decay", o.weight_decay);
    use("clip_norm", o.clip_norm);
    use("clip_value", o.clip_value);
    use("accumulate", o.accumulate);
    use("shards", o.shards);
    use("loss_scale", o.loss_scale);
    use("loss_scale_steps", o.loss_scale_steps);
    use("average", o.average);
    use("guard_loss", o.guard_loss);
}

template <typename T>
void set(const std::string& name, nb::handle value, T& member) {
    if constexpr (std::is_same_v<T, bool>) {
        if (!set_flag(value, member)) wrong_value(name, "a bool", value);
    } else {
        if (!nb::try_cast(value, member))
            wrong_value(name, std::is_integral_v<T> ? "an int" : "a number", value);
    }
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
    NetOptions options;
    options.mode = Mode::training;
    options.progress = Callback(nb::none());  // only checks for Ctrl-C
    for (const auto [key, value] : nb::borrow<nb::dict>(keywords)) {
        const auto name = nb::cast<std::string>(key);
        const auto found = fields().find(name);
        if (found == fields().end()) {
            std::vector<std::string> names;
            for (const auto& [known, field] : fields()) names.emplace_back(known);
            unknown("Net", name, names);
        }
        if (!found->second.set(options, value)) wrong_value(name, found->second.takes, value);
    }
    return options;
}

SolverOptions solver_options(nb::handle keywords) {
    SolverOptions options;
    for (const auto item : nb::borrow<nb::dict>(keywords)) {
        const auto name = nb::cast<std::string>(item.first);
        const nb::handle value = item.second;
        std::vector<std::string> names{"kind"};
        bool is_known = name == "kind";
        if (is_known) options.kind = to_kind(value);
        each_field(options, [&](const char* field, auto& member) {
            names.emplace_back(field);
            if (name != field) return;
            is_known = true;
            set(name, value, member);
        });
        if (!is_known) unknown("a solver", name, names);
    }
    return options;
}

nb::dict dict_of(const SolverOptions& options) {
    nb::dict made;
    for (const auto& [name, kind] : solver_kinds())
        if (kind == options.kind) made["kind"] = name;
    each_field(options, [&](const char* name, auto member) { made[name] = member; });
    return made;
}

}  // namespace dlprim::python

// SPDX-License-Identifier: MIT
// train(): include/dlprim/trainer.hpp for Python; python/dlprim/train.py calls it.
#include "callback.hpp"
#include "net_options.hpp"
#include "net_parts.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim::python {
namespace {

void bind_progress(nb::module_& module) {
    using Progress = TrainProgress;
    nb::class_<Progress>(module, "TrainProgress", "The progress of a training.")
        .def_ro("epoch", &Progress::epoch, "The current epoch, from 1.")
        .def_ro("epochs", &Progress::epochs)
        .def_ro("batch", &Progress::batch, "Number of finished batches of the epoch.")
        .def_ro("batches", &Progress::batches, "Number of batches per epoch.")
        .def_ro("loss", &Progress::loss, "Mean over the epoch's batches so far.")
        .def_ro("accuracy", &Progress::accuracy,
                "Share of the epoch's examples so far, 0 to 1; negative if it is not measured.")
        .def_ro("metrics", &Progress::metrics, "Names and values over the epoch so far.")
        .def_ro("test_metrics", &Progress::test_metrics,
                "Names and values over the test set, if epoch_done.")
        .def_ro("learning_rate", &Progress::learning_rate)
        .def_ro("images_per_second", &Progress::images_per_second)
        .def_ro("epoch_done", &Progress::epoch_done,
                "Whether this is the report at the end of an epoch.")
        .def_ro("test_loss", &Progress::test_loss, "The loss on the test set, if epoch_done.")
        .def_ro("test_accuracy", &Progress::test_accuracy,
                "The accuracy on the test set, if epoch_done; negative if there is no test set.")
        .def("__repr__", [](const Progress& p) {
            return nb::str("TrainProgress(epoch={}/{}, batch={}/{}, loss={:.4g}, accuracy={:.4g})")
                .format(p.epoch, p.epochs, p.batch, p.batches, p.loss, p.accuracy);
        });
}

void bind_result(nb::module_& module) {
    using Result = TrainResult;
    nb::class_<Result>(module, "TrainResult", "The results of a training.")
        .def_ro("epochs", &Result::epochs)
        .def_ro("train_loss", &Result::train_loss, "Of the last epoch.")
        .def_ro("train_accuracy", &Result::train_accuracy, "Of the last epoch, 0 to 1.")
        .def_ro("test_loss", &Result::test_loss, "Of the last epoch.")
        .def_ro("test_accuracy", &Result::test_accuracy,
                "Of the last epoch, 0 to 1; below 0: there is no test set.")
        .def_ro("model", &Result::model, "The weights file.")
        .def_ro("checkpoint", &Result::checkpoint, "The last checkpoint; empty if there is none.")
        .def("__repr__", [](const Result& r) {
            return nb::str(
                       "TrainResult(epochs={}, train_loss={:.4g}, test_accuracy={:.4g}, "
                       "model={!r})")
                .format(r.epochs, r.train_loss, r.test_accuracy, r.model);
        });
}

TrainResult run_training(nb::handle on, const std::string& config, const std::string& text,
                         const std::string& out, const std::string& resume, bool replace,
                         int epochs, const std::optional<std::string>& precision,
                         const std::vector<std::pair<std::string, std::string>>& precisions,
                         nb::handle on_note, nb::handle on_progress, nb::handle on_planning) {
    const Context& context = to_context(on);
    TrainCall call;
    call.config = config;
    call.config_text = text;
    call.out = out;
    call.resume = resume;
    call.replace = replace;
    call.epochs = epochs;
    if (precision) call.precision = parse_precision(*precision);
    for (const auto& [name, value] : precisions)
        call.precisions.emplace_back(name, parse_precision(value));
    // Both check for Ctrl-C, even if there is no callable.
    call.note = Callback(on_note);
    call.progress = Callback(on_progress);
    call.planning = Callback(on_planning);
    const ContextLock lock(context);
    return train(context, call);
}

}  // namespace

void bind_train(nb::module_& module) {
    bind_progress(module);
    bind_result(module);
    module.def("train", run_training, nb::arg("context"), nb::arg("config"), nb::arg("text"),
               nb::arg("out"), nb::arg("resume"), nb::arg("replace"), nb::arg("epochs"),
               nb::arg("precision").none(), nb::arg("precisions"), nb::arg("on_note").none(),
               nb::arg("on_progress").none(), nb::arg("on_planning").none(),
               nb::sig("def train(context: Context, config: str, text: str, out: str, resume: str, "
                       "replace: bool, epochs: int, precision: str | None, precisions: "
                       "collections.abc.Sequence[tuple[str, str]], on_note: "
                       "collections.abc.Callable[[str], object] | None, on_progress: "
                       "collections.abc.Callable[[TrainProgress], object] | None, on_planning: "
                       "collections.abc.Callable[[str, int, int], object] | None) -> TrainResult"),
               "dlprim.train() documents the arguments.");
}

}  // namespace dlprim::python

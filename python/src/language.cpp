// SPDX-License-Identifier: MIT
// LanguageModel and texts in the making, for dlprim.language.
#include "bind.hpp"
#include "net_values.hpp"
#include "owned.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>

namespace dlprim::python {
namespace {

using OwnedModel = Owned<LanguageModel>;
using OwnedGeneration = Owned<Generation>;
using OwnedBatch = Owned<GenerationBatch>;

/// A text that may end within a character, or hold bytes that are none.
nb::object to_str(const std::string& text) {
    nb::object result = nb::steal(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    if (!result) throw nb::python_error();
    return result;
}

template <typename T>
nb::object to_numpy(const std::vector<T>& values, DType dtype) {
    HostTensor tensor{Shape{static_cast<std::int64_t>(values.size())}, dtype, {}};
    tensor.data.resize(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
    return to_array(std::move(tensor));
}

constexpr const char* options_signature =
    "length: int = 128, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0, "
    "min_p: float = 0.0, repetition_penalty: float = 1.0, repetition_window: int = 0, "
    "seed: int = 1, stop: str | collections.abc.Sequence[str] = (), special: bool = True, "
    "remember: bool = False, log_probabilities: bool = False, alternatives: int = 0";

void set_stop(GenerateOptions& options, nb::handle value) {
    if (nb::isinstance<nb::str>(value))
        options.stop = {nb::cast<std::string>(value)};
    else
        options.stop = nb::cast<std::vector<std::string>>(value);
}

GenerateOptions to_options(const nb::kwargs& given) {
    GenerateOptions options;
    const std::map<std::string, std::function<void(nb::handle)>, std::less<>> setters{
        {"length", [&](nb::handle v) { options.length = nb::cast<std::int64_t>(v); }},
        {"temperature", [&](nb::handle v) { options.temperature = nb::cast<double>(v); }},
        {"top_k", [&](nb::handle v) { options.top_k = nb::cast<std::int64_t>(v); }},
        {"top_p", [&](nb::handle v) { options.top_p = nb::cast<double>(v); }},
        {"min_p", [&](nb::handle v) { options.min_p = nb::cast<double>(v); }},
        {"repetition_penalty",
         [&](nb::handle v) { options.repetition_penalty = nb::cast<double>(v); }},
        {"repetition_window",
         [&](nb::handle v) { options.repetition_window = nb::cast<std::int64_t>(v); }},
        {"seed", [&](nb::handle v) { options.seed = nb::cast<std::uint64_t>(v); }},
        {"stop", [&](nb::handle v) { set_stop(options, v); }},
        {"special", [&](nb::handle v) { options.special = nb::cast<bool>(v); }},
        {"remember", [&](nb::handle v) { options.remember = nb::cast<bool>(v); }},
        {"log_probabilities", [&](nb::handle v) { options.log_probabilities = nb::cast<bool>(v); }},
        {"alternatives", [&](nb::handle v) { options.alternatives = nb::cast<std::int64_t>(v); }}};
    for (const auto& [key, value] : given) {
        const auto name = nb::cast<std::string>(key);
        const auto setter = setters.find(name);
        if (setter == setters.end())
            throw nb::type_error(("there is no option '" + name + "' of generating").c_str());
        try {
            setter->second(value);
        } catch (const nb::cast_error&) {
            throw nb::type_error(("option '" + name + "' has a value of another type").c_str());
        }
    }
    return options;
}

std::vector<ChatMessage> to_messages(nb::handle messages) {
    std::vector<ChatMessage> result;
    for (nb::handle message : messages) {
        if (!PyDict_Check(message.ptr()))
            wrong_type("a message", "a dict with 'role' and 'content'", message);
        const nb::dict members = nb::borrow<nb::dict>(message);
        if (!members.contains("role") || !members.contains("content"))
            throw nb::value_error("a message has 'role' and 'content'");
        result.push_back(
            {nb::cast<std::string>(members["role"]), nb::cast<std::string>(members["content"])});
    }
    return result;
}

/// Variables of a template as the JSON that the library reads.
ChatOptions to_chat_options(bool answer, const nb::kwargs& variables) {
    ChatOptions options;
    options.answer = answer;
    if (!variables.empty())
        options.variables = nb::cast<std::string>(
            nb::module_::import_("json").attr("dumps")(nb::borrow<nb::dict>(variables)));
    return options;
}

void make_model(OwnedModel* self, nb::handle on, const std::filesystem::path& path,
                std::int64_t context_length, const std::string& precision,
                std::int64_t prompt_piece, const std::filesystem::path& lora, std::int64_t batch) {
    const Context& context = to_context(on);
    LanguageModelOptions options;
    options.context = context_length;
    options.prompt_piece = prompt_piece;
    options.precision = parse_precision(precision);
    options.adapter = lora.string();
    options.batch = batch;
    new (self) OwnedModel({context}, [&] {
        return std::make_unique<LanguageModel>(context, path.string(), options);
    });
}

std::vector<std::int32_t> to_tokens(const OwnedModel& model, nb::handle prompt, bool special) {
    if (!nb::isinstance<nb::str>(prompt)) return nb::cast<std::vector<std::int32_t>>(prompt);
    const auto text = nb::cast<std::string>(prompt);
    const ContextLock lock(model.contexts());
    return model->encode(text, special);
}

OwnedGeneration* start(const OwnedModel& model, nb::handle prompt, const nb::kwargs& given) {
    const GenerateOptions options = to_options(given);
    const std::vector<std::int32_t> tokens = to_tokens(model, prompt, options.special);
    return new OwnedGeneration(model.contexts(), [&] {
        return std::make_unique<Generation>(model->start(tokens, options));
    });
}

std::optional<GeneratedPiece> next_piece(const OwnedGeneration& text) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const ContextLock lock(text.contexts());
    return text->next();
}

GenerateResult result_of(const OwnedGeneration& text) {
    const ContextLock lock(text.contexts());
    return text->result();
}

nb::object run(const OwnedGeneration& text) {
    while (next_piece(text)) {
    }
    return to_str(result_of(text).text);
}

/// Texts of several prompts in the making. Python takes what a step makes part by part.
class Texts {
  public:
    explicit Texts(const OwnedModel& model)
        : model_(&model), batch_(model.contexts(), [&] {
              return std::make_unique<GenerationBatch>(model->start_batch());
          }) {}

    std::size_t add(nb::handle prompt, const nb::kwargs& given) {
        const GenerateOptions options = to_options(given);
        const std::vector<std::int32_t> tokens = to_tokens(*model_, prompt, options.special);
        const ContextLock lock(batch_.contexts());
        return batch_->add(tokens, options);
    }
    void add_all(nb::handle prompts, const nb::kwargs& given) {
        if (nb::isinstance<nb::str>(prompts)) wrong_type("prompts", "a list of prompts", prompts);
        for (nb::handle prompt : prompts) add(prompt, given);
    }
    /// Makes steps until there is a part, or nothing is left to be made.
    std::optional<GenerationBatch::Part> next() {
        while (true) {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            const ContextLock lock(batch_.contexts());
            if (parts_.empty()) {
                if (batch_->running() + batch_->waiting() == 0) return std::nullopt;
                for (GenerationBatch::Part& part : batch_->step())
                    parts_.push_back(std::move(part));
                continue;
            }
            GenerationBatch::Part part = std::move(parts_.front());
            parts_.pop_front();
            if (part.ended) results_[part.number] = batch_->take(part.number);
            return part;
        }
    }
    GenerateResult take(std::size_t number) {
        const ContextLock lock(batch_.contexts());
        std::erase_if(parts_, [&](const auto& part) { return part.number == number; });
        const auto found = results_.find(number);
        if (found == results_.end()) return batch_->take(number);
        GenerateResult result = std::move(found->second);
        results_.erase(found);
        return result;
    }
    std::pair<std::size_t, std::size_t> load() const {
        const ContextLock lock(batch_.contexts());
        return {batch_->running(), batch_->waiting()};
    }

  private:
    const OwnedModel* model_;
    OwnedBatch batch_;
    // Members below are used with the lock held.
    std::deque<GenerationBatch::Part> parts_;
    std::map<std::size_t, GenerateResult> results_;  ///< of texts that have ended
};

nb::list generate(const OwnedModel& model, nb::handle prompts, const nb::kwargs& given) {
    Texts texts(model);
    texts.add_all(prompts, given);
    const auto [running, waiting] = texts.load();
    while (texts.next()) {
    }
    nb::list results;
    for (std::size_t i = 0; i < running + waiting; ++i) results.append(nb::cast(texts.take(i)));
    return results;
}

nb::list alternatives_of(const std::vector<TokenProbability>& alternatives) {
    nb::list result;
    for (const TokenProbability& one : alternatives)
        result.append(nb::make_tuple(one.token, one.log_probability));
    return result;
}

nb::dict memory_of(const OwnedModel& model) {
    LanguageModelMemory memory;
    {
        const ContextLock lock(model.contexts());
        memory = model->memory();
    }
    nb::dict result;
    result["weights"] = memory.weights;
    result["per_token"] = memory.per_token;
    result["step"] = memory.step;
    result["device"] = memory.device;
    result["longest_context"] = memory.longest_context;
    return result;
}

void bind_piece(nb::module_& module) {
    nb::class_<GeneratedPiece>(module, "GeneratedPiece",
                               "A token of a text in the making, and the text that is sure by it.")
        .def_ro("token", &GeneratedPiece::token,
                "The token's number; None in the last piece, which is text that was kept back.")
        .def_prop_ro(
            "text", [](const GeneratedPiece& self) { return to_str(self.text); },
            nb::sig("def text(self) -> str"),
            "Text in whole characters, empty where the next token decides.")
        .def_ro("log_probability", &GeneratedPiece::log_probability,
                "The token's, where start() was asked for log_probabilities or alternatives.")
        .def_prop_ro(
            "alternatives",
            [](const GeneratedPiece& self) { return alternatives_of(self.alternatives); },
            nb::sig("def alternatives(self) -> list[tuple[int, float]]"),
            "The likeliest tokens in its place with their log-probabilities, where start() was "
            "asked for them.");
}

void bind_result(nb::module_& module) {
    nb::class_<GenerateResult>(module, "GenerateResult", "A text that was made, and its figures.")
        .def_prop_ro(
            "text", [](const GenerateResult& self) { return to_str(self.text); },
            nb::sig("def text(self) -> str"), "The text.")
        .def_ro("tokens", &GenerateResult::tokens, "Its tokens.")
        .def_ro("log_probabilities", &GenerateResult::log_probabilities,
                "Of the tokens, where they were asked for.")
        .def_prop_ro(
            "alternatives",
            [](const GenerateResult& self) {
                nb::list all;
                for (const auto& one : self.alternatives) all.append(alternatives_of(one));
                return all;
            },
            nb::sig("def alternatives(self) -> list[list[tuple[int, float]]]"),
            "The likeliest tokens in the place of each with their log-probabilities, where they "
            "were asked for.")
        .def_prop_ro(
            "end", [](const GenerateResult& self) { return std::string(name_of(self.end)); },
            "What ended the text: 'length', 'token', 'stop', 'context', or 'caller' where it was "
            "taken before its end.")
        .def_ro("prompt_tokens", &GenerateResult::prompt_tokens, "How many tokens the prompt has.")
        .def_ro("remembered_tokens", &GenerateResult::remembered_tokens,
                "How many of these were not read.")
        .def_ro("prompt_seconds", &GenerateResult::prompt_seconds,
                "Until the prompt was read, from when it had a place.")
        .def_ro("first_token_seconds", &GenerateResult::first_token_seconds,
                "Until the first token was known.")
        .def_ro("seconds", &GenerateResult::seconds, "From the first token to the last.");
}

void bind_batch(nb::module_& module) {
    static const std::string add_signature =
        std::string("def add(self, prompt: str | collections.abc.Sequence[int], *, ") +
        options_signature + ") -> int";
    nb::class_<Texts>(
        module, "GenerationBatch",
        "Texts that are made side by side, which LanguageModel.start_batch() or stream() begins. "
        "Iterating makes them and gives pairs of a text's number and a GeneratedPiece, until none "
        "is left. While the model reads something else, starts another text or forgets, they end: "
        "what comes next is InvalidArgumentError.")
        .def("add", &Texts::add, nb::arg("prompt"), nb::arg("options"),
             nb::sig(add_signature.c_str()),
             "Add the text that follows a prompt, and return its number; they count from 0. It may "
             "be added while others are made. Raises as LanguageModel.start().")
        .def(
            "__iter__", [](nb::handle self) { return nb::borrow(self); },
            nb::sig("def __iter__(self) -> GenerationBatch"))
        .def(
            "__next__",
            [](Texts& self) {
                while (std::optional<GenerationBatch::Part> part = self.next())
                    if (part->piece) return std::pair(part->number, std::move(*part->piece));
                throw nb::stop_iteration();
            },
            nb::sig("def __next__(self) -> tuple[int, GeneratedPiece]"))
        .def("take", &Texts::take, nb::arg("number"),
             "Return a text with its figures, which the batch no longer has. One that has not "
             "ended ends.")
        .def_prop_ro(
            "running", [](const Texts& self) { return self.load().first; },
            "How many texts have a place.")
        .def_prop_ro(
            "waiting", [](const Texts& self) { return self.load().second; },
            "How many texts wait for one.");
}

void bind_generation(nb::module_& module) {
    const auto figure = [](auto member) {
        return [member](const OwnedGeneration& self) { return result_of(self).*member; };
    };
    nb::class_<OwnedGeneration>(
        module, "Generation",
        "A text in the making, which LanguageModel.start() begins. Iterating makes it piece by "
        "piece. While the model reads something else, starts another text or forgets, this one "
        "ends: what comes next is InvalidArgumentError.")
        .def(
            "__iter__", [](nb::handle self) { return nb::borrow(self); },
            nb::sig("def __iter__(self) -> Generation"))
        .def(
            "__next__",
            [](const OwnedGeneration& self) {
                std::optional<GeneratedPiece> piece = next_piece(self);
                if (!piece) throw nb::stop_iteration();
                return std::move(*piece);
            },
            nb::sig("def __next__(self) -> GeneratedPiece"))
        .def("run", run, nb::sig("def run(self) -> str"),
             "Make all that follows, and return the text.")
        .def_prop_ro(
            "text", [](const OwnedGeneration& self) { return to_str(result_of(self).text); },
            nb::sig("def text(self) -> str"), "The text so far.")
        .def_prop_ro("tokens", figure(&GenerateResult::tokens), "Its tokens.")
        .def_prop_ro("log_probabilities", figure(&GenerateResult::log_probabilities),
                     "Of the tokens, where start() was asked for them.")
        .def_prop_ro(
            "end",
            [](const OwnedGeneration& self) { return std::string(name_of(result_of(self).end)); },
            "What ended the text: 'length', 'token', 'stop' or 'context'.")
        .def_prop_ro("prompt_tokens", figure(&GenerateResult::prompt_tokens),
                     "How many tokens the prompt has.")
        .def_prop_ro("remembered_tokens", figure(&GenerateResult::remembered_tokens),
                     "How many of these were not read again.")
        .def_prop_ro("prompt_seconds", figure(&GenerateResult::prompt_seconds),
                     "Until the prompt was read.")
        .def_prop_ro("first_token_seconds", figure(&GenerateResult::first_token_seconds),
                     "Until the first token was known, from start() on.")
        .def_prop_ro("seconds", figure(&GenerateResult::seconds),
                     "From the first token to the last.");
}

void bind_reading(nb::class_<OwnedModel>& model) {
    model
        .def(
            "encode",
            [](const OwnedModel& self, const std::string& text, bool special) {
                const ContextLock lock(self.contexts());
                return self->encode(text, special);
            },
            nb::arg("text"), nb::arg("special") = true,
            "Return the tokens of a text, with the one that begins texts if the model has it. With "
            "`special`, names of special tokens are tokens and not text.")
        .def(
            "decode",
            [](const OwnedModel& self, const std::vector<std::int32_t>& tokens) {
                return to_str(locked(&LanguageModel::decode)(self, tokens));
            },
            nb::arg("tokens"),
            nb::sig("def decode(self, tokens: collections.abc.Sequence[int]) -> str"),
            "Return the text of tokens.")
        .def(
            "read",
            [](const OwnedModel& self, const std::vector<std::int32_t>& tokens) {
                return to_numpy(locked(&LanguageModel::read)(self, tokens), DType::f32);
            },
            nb::arg("tokens"),
            nb::sig("def read(self, tokens: collections.abc.Sequence[int]) -> typing.Any"),
            "Read tokens behind those that were read before, and return the logits of the next one "
            "as a numpy array. Raises InvalidArgumentError for more tokens than context_length in "
            "all.")
        .def("forget", locked(&LanguageModel::forget), nb::arg("tokens") = 0,
             "Forget all tokens but the first `tokens`.")
        .def(
            "log_probabilities",
            [](const OwnedModel& self, const std::vector<std::int32_t>& tokens) {
                return to_numpy(locked(&LanguageModel::log_probabilities)(self, tokens),
                                DType::f64);
            },
            nb::arg("tokens"),
            nb::sig("def log_probabilities(self, tokens: collections.abc.Sequence[int]) -> "
                    "typing.Any"),
            "Return the log-probability of each token but the first behind those before it, as a "
            "numpy array. Forgets all, and reads one token after the other.");
}

void bind_writing(nb::class_<OwnedModel>& model) {
    static const std::string signature =
        std::string("def start(self, prompt: str | collections.abc.Sequence[int], *, ") +
        options_signature + ") -> Generation";
    const std::string several = std::string(
                                    "(self, prompts: collections.abc.Iterable[str | "
                                    "collections.abc.Sequence[int]], *, ") +
                                options_signature + ") -> ";
    static const std::string generate_signature = "def generate" + several + "list[GenerateResult]";
    static const std::string stream_signature = "def stream" + several + "GenerationBatch";
    model
        .def("start", start, nb::rv_policy::take_ownership, nb::arg("prompt"), nb::arg("options"),
             nb::sig(signature.c_str()),
             "Read a prompt, a text or tokens, and return the text that follows, of which "
             "iterating makes a token at a time. docs/language.md says what the options do. Raises "
             "InvalidArgumentError for a prompt that is empty or does not fit, and for options "
             "that make no sense, and OutOfMemoryError, which says how many tokens fit.")
        .def("generate", generate, nb::arg("prompts"), nb::arg("options"),
             nb::sig(generate_signature.c_str()),
             "Return the texts that follow prompts, in their order, of which the model's `batch` "
             "are made at a time. When one ends, the next takes its place. Raises as start().")
        .def(
            "stream",
            [](const OwnedModel& self, nb::handle prompts, const nb::kwargs& given) {
                auto texts = std::make_unique<Texts>(self);
                texts->add_all(prompts, given);
                return texts;
            },
            nb::keep_alive<0, 1>(), nb::arg("prompts"), nb::arg("options"),
            nb::sig(stream_signature.c_str()),
            "Begin the texts that follow prompts. Iterating gives pairs of a prompt's number and a "
            "GeneratedPiece as they are made. Raises as start().")
        .def(
            "start_batch", [](const OwnedModel& self) { return std::make_unique<Texts>(self); },
            nb::keep_alive<0, 1>(), nb::sig("def start_batch(self) -> GenerationBatch"),
            "Forget all, and return a batch without texts, to which they are added one by one.")
        .def_prop_ro("has_chat_template", locked(&LanguageModel::has_chat_template),
                     "Whether the model's file has a template for chats.")
        .def(
            "chat_prompt",
            [](const OwnedModel& self, nb::handle messages, bool answer,
               const nb::kwargs& variables) {
                return locked(&LanguageModel::chat_prompt)(self, to_messages(messages),
                                                           to_chat_options(answer, variables));
            },
            nb::arg("messages"), nb::arg("answer") = true, nb::arg("variables"),
            nb::sig("def chat_prompt(self, messages: collections.abc.Iterable[dict[str, str]], "
                    "answer: bool = True, **variables: typing.Any) -> str"),
            "Return the prompt for a chat as the model's template writes it. Messages are dicts "
            "with 'role' and 'content'. With `answer`, the prompt ends where the assistant's "
            "answer "
            "begins. `variables` are more that the template knows. Raises NotFoundError where "
            "there is no template, FormatError for one with an error, and InvalidArgumentError for "
            "a chat that it does not take.")
        .def(
            "encode_chat",
            [](const OwnedModel& self, nb::handle messages, bool answer,
               const nb::kwargs& variables) {
                return locked(&LanguageModel::encode_chat)(self, to_messages(messages),
                                                           to_chat_options(answer, variables));
            },
            nb::arg("messages"), nb::arg("answer") = true, nb::arg("variables"),
            nb::sig("def encode_chat(self, messages: collections.abc.Iterable[dict[str, str]], "
                    "answer: bool = True, **variables: typing.Any) -> list[int]"),
            "Return the tokens of this prompt. Names of control tokens in messages are text.");
}

}  // namespace

void bind_language(nb::module_& module) {
    bind_piece(module);
    bind_generation(module);
    bind_result(module);
    bind_batch(module);
    nb::class_<OwnedModel> model(module, "LanguageModel",
                                 "A language model in a file, on one device (docs/language.md).");
    model
        .def("__init__", make_model, nb::arg("context"), nb::arg("path"), nb::kw_only(),
             nb::arg("context_length") = 0, nb::arg("precision") = "fp32",
             nb::arg("prompt_piece") = LanguageModelOptions{}.prompt_piece, nb::arg("lora") = "",
             nb::arg("batch") = 1,
             nb::sig("def __init__(self, context: Context, path: str | os.PathLike[str], *, "
                     "context_length: int = 0, precision: str = 'fp32', prompt_piece: int = 64, "
                     "lora: str | os.PathLike[str] = '', batch: int = 1) -> None"),
             "`context_length` is the most tokens that are remembered, 0 for the model's or 8192 "
             "if it is less; `prompt_piece` how many tokens of a prompt are read at a time; "
             "`lora` the folder of an adapter; `batch` how many texts generate(), stream() and "
             "start_batch() make at a time. Raises "
             "MissingFileError, FormatError, and UnsupportedError, which says what is supported.")
        .def_prop_ro("architecture", locked(&LanguageModel::architecture),
                     "The architecture's name, such as 'llama'.")
        .def_prop_ro("vocabulary", locked(&LanguageModel::vocabulary), "The number of tokens.")
        .def_prop_ro("context_length", locked(&LanguageModel::context_length),
                     "The most tokens that are remembered.")
        .def_prop_ro("position", locked(&LanguageModel::position),
                     "How many tokens are remembered.")
        .def("memory", memory_of, nb::sig("def memory(self) -> dict[str, int]"),
             "Return what the model takes in bytes, known before anything is read: `weights`, "
             "`per_token` that is remembered, a `step`, and what the `device` has; and "
             "`longest_context`, the most tokens that fit.")
        .def_prop_ro("peak_bytes", locked(&LanguageModel::peak_bytes),
                     "The most device memory that a step so far takes.");
    bind_reading(model);
    bind_writing(model);
}

}  // namespace dlprim::python

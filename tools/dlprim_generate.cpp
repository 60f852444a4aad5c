// SPDX-License-Identifier: MIT
// dlprim_generate: prints what a language model says after a prompt, as it is made, and how fast it
// was; or chats, turn by turn.
#include "common.hpp"

#include <dlprim/language.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>

using namespace dlprim;

namespace {

struct Options {
    std::string model, prompt, prompt_file, prompts_file, system, device;
    std::string precision = "fp32";
    bool has_prompt = false, chat = false, plain = false, json = false, memory = false;
    LanguageModelOptions language;
    GenerateOptions generate;
    ChatOptions template_variables;
};

volatile std::sig_atomic_t interrupted = 0;

/// The first Ctrl-C ends the text, or the chat while it waits for a turn; a second one before that
/// is done ends the process.
void end_text_when_interrupted() {
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int signal) {
        if (interrupted != 0) {
            std::signal(signal, SIG_DFL);
            std::raise(signal);
        }
        interrupted = 1;
    };
    action.sa_flags = SA_RESTART;  // drivers do not expect calls of the system to end early
    // A shell starts commands in the background with SIGINT ignored, which stays so.
    if (sigaction(SIGINT, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, nullptr);
}

std::string read_all(std::istream& from) {
    return {std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>()};
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Error(ErrorKind::io, "'" + path + "' cannot be read");
    return read_all(file);
}

std::string read_prompt(const Options& options) {
    if (options.has_prompt) return options.prompt;
    return options.prompt_file.empty() ? read_all(std::cin) : read_file(options.prompt_file);
}

/// The lines of a text that are not empty.
std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, end - at);
        if (line.ends_with('\r')) line.pop_back();
        if (!line.empty()) lines.push_back(line);
        at = end + 1;
    }
    return lines;
}

double rate(double count, double seconds) {
    return seconds > 0 ? count / seconds : 0;
}

/// The time per token begins with the first one, which the prompt's time has.
double tokens_per_second(const GenerateResult& result) {
    const auto later = static_cast<double>(result.tokens.size()) - 1;
    return later > 0 ? rate(later, result.seconds) : 0;
}

/// Of the tokens that were read.
double prompt_per_second(const GenerateResult& result) {
    return rate(static_cast<double>(result.prompt_tokens - result.remembered_tokens),
                result.prompt_seconds);
}

void print_json(const LanguageModel& model, const GenerateResult& result) {
    nlohmann::ordered_json json;
    json["text"] = result.text;
    json["tokens"] = result.tokens;
    if (!result.log_probabilities.empty()) json["log_probabilities"] = result.log_probabilities;
    json["end"] = name_of(result.end);
    json["prompt_tokens"] = result.prompt_tokens;
    json["remembered_tokens"] = result.remembered_tokens;
    json["prompt_tokens_per_s"] = prompt_per_second(result);
    json["tokens_per_s"] = tokens_per_second(result);
    json["first_token_ms"] = result.first_token_seconds * 1e3;
    json["peak_bytes"] = model.peak_bytes();
    json["device"] = model.context().info().str();
    // A text that ends within a character is not UTF-8.
    std::puts(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    std::fflush(stdout);
}

void print_figures(const LanguageModel& model, const GenerateResult& result) {
    std::fprintf(stderr,
                 "prompt: %lld tokens, %.1f a second; text: %zu tokens, %.1f a second; first token "
                 "after %.0f ms; %.0f MiB on %s\n",
                 static_cast<long long>(result.prompt_tokens), prompt_per_second(result),
                 result.tokens.size(), tokens_per_second(result), result.first_token_seconds * 1e3,
                 static_cast<double>(model.peak_bytes()) / 1048576,
                 model.context().info().str().c_str());
}

void print_memory(const LanguageModel& model, bool json) {
    const LanguageModelMemory memory = model.memory();
    if (json) {
        const nlohmann::ordered_json object{{"weight_bytes", memory.weights},
                                            {"bytes_per_token", memory.per_token},
                                            {"step_bytes", memory.step},
                                            {"device_bytes", memory.device},
                                            {"context", model.context_length()},
                                            {"longest_context", memory.longest_context},
                                            {"device", model.context().info().str()}};
        std::puts(object.dump().c_str());
        return;
    }
    const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1048576; };
    const auto all = static_cast<std::uint64_t>(model.context_length()) * memory.per_token;
    std::printf(
        "weights: %.1f MiB\nremembered tokens: %.3f MiB each, %.1f MiB for a context of %lld\n"
        "a step: %.1f MiB\n%s: %.0f MiB, in which a context of %lld fits\n",
        mib(memory.weights), mib(memory.per_token), mib(all),
        static_cast<long long>(model.context_length()), mib(memory.step),
        model.context().info().str().c_str(), mib(memory.device),
        static_cast<long long>(memory.longest_context));
}

GenerateResult say(LanguageModel& model, const std::vector<std::int32_t>& prompt,
                   const Options& options) {
    return model.generate(prompt, options.generate, [&](std::string_view text) {
        if (!options.json) {
            std::fwrite(text.data(), 1, text.size(), stdout);
            std::fflush(stdout);
        }
        return interrupted == 0 && std::ferror(stdout) == 0;
    });
}

std::vector<ChatMessage> opening(const Options& options) {
    if (options.system.empty()) return {};
    return {{"system", options.system}};
}

/// A prompt as the command line has it, or as a chat of one turn.
std::vector<std::int32_t> tokens_of(const LanguageModel& model, const std::string& prompt,
                                    const Options& options) {
    if (!options.chat) return model.encode(prompt, options.generate.special);
    std::vector<ChatMessage> messages = opening(options);
    messages.push_back({"user", prompt});
    return model.encode_chat(messages, options.template_variables);
}

/// The next line of standard input; nothing at its end and on Ctrl-C.
std::optional<std::string> read_turn(bool terminal) {
    if (terminal) std::fputs("> ", stderr);
    char* line = nullptr;
    std::size_t room = 0;
    pollfd input{STDIN_FILENO, POLLIN, 0};  // poll() ends when a signal arrives
    const ssize_t count = poll(&input, 1, -1) < 0 ? -1 : getline(&line, &room, stdin);
    std::string text(line == nullptr || count < 0 ? "" : line,
                     count < 0 ? 0 : static_cast<std::size_t>(count));
    std::free(line);
    if (count < 0 || interrupted != 0) {
        if (terminal) std::fputs("\n", stderr);
        return std::nullopt;
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return text;
}

/// The text in UTF-8: bytes of an answer that are no characters are replaced.
std::string whole_characters(const std::string& text) {
    using nlohmann::json;
    return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
}

/// Turns are lines of standard input. What was said before stays remembered, so that a turn reads
/// only what is new.
void chat(LanguageModel& model, Options& options) {
    options.generate.remember = true;
    std::setvbuf(stdin, nullptr, _IONBF, 0);  // so that poll() knows of all that is not read
    const bool terminal = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
    if (terminal)
        std::fputs("A line is a turn. Ctrl-C ends an answer, Ctrl-D ends the chat.\n", stderr);
    std::vector<ChatMessage> messages = opening(options);
    while (const std::optional<std::string> turn = read_turn(terminal)) {
        if (turn->empty()) continue;
        messages.push_back({"user", *turn});
        const std::vector<std::int32_t> prompt =
            model.encode_chat(messages, options.template_variables);
        const GenerateResult result = say(model, prompt, options);
        if (options.json)
            print_json(model, result);
        else
            std::puts("");
        messages.push_back({"assistant", whole_characters(result.text)});
        if (std::ferror(stdout) != 0) return;
        if (result.end == GenerateResult::End::context)
            throw Error(ErrorKind::invalid_argument,
                        "the chat has filled the context of " +
                            std::to_string(model.context_length()) +
                            " tokens: begin another one, or give a larger --context");
        interrupted = 0;
    }
}

/// Texts are printed when all are made.
void generate_batch(LanguageModel& model, const std::vector<std::string>& prompts,
                    const Options& options) {
    std::vector<std::vector<std::int32_t>> tokens;
    for (const std::string& prompt : prompts) tokens.push_back(tokens_of(model, prompt, options));
    const std::vector<GenerateResult> results = model.generate(
        tokens, options.generate, [](std::size_t, std::string_view) { return interrupted == 0; });
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (options.json) {
            print_json(model, results[i]);
            continue;
        }
        std::printf("> %s\n%s\n", prompts[i].c_str(), results[i].text.c_str());
        std::fflush(stdout);
        print_figures(model, results[i]);
    }
}

void generate(Options& options) {
    options.language.precision = parse_precision(options.precision);
    options.language.progress = tools::terminal_progress();
    options.generate.special = !options.plain;
    const Context context(options.device);
    LanguageModel model(context, options.model, options.language);
    if (options.memory) return print_memory(model, options.json);
    const bool one = options.has_prompt || !options.prompt_file.empty();
    if (options.chat) model.chat_prompt({{"user", "Hello"}}, options.template_variables);
    if (options.chat && !one && options.prompts_file.empty()) {
        end_text_when_interrupted();
        return chat(model, options);
    }
    std::vector<std::string> prompts;
    if (options.prompts_file.empty())
        prompts.push_back(read_prompt(options));
    else
        prompts = lines_of(read_file(options.prompts_file));
    end_text_when_interrupted();
    if (options.language.batch > 1) return generate_batch(model, prompts, options);
    for (const std::string& prompt : prompts) {
        if (prompts.size() > 1 && !options.json) std::printf("> %s\n", prompt.c_str());
        const GenerateResult result = say(model, tokens_of(model, prompt, options), options);
        if (options.json) {
            print_json(model, result);
        } else {
            std::puts("");
            print_figures(model, result);
        }
        if (interrupted != 0 || std::ferror(stdout) != 0) return;
    }
}

void add_drawing(CLI::App& app, GenerateOptions& how) {
    app.add_option("--length", how.length, "the most tokens that are made (128)")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
    app.add_option("--repetition-penalty", how.repetition_penalty,
                   "by which logits of tokens that were there are divided, or multiplied where "
                   "they are negative (1)");
    app.add_option("--repetition-window", how.repetition_window,
                   "how many of the last tokens count for it; 0: all (0)");
    app.add_option(
        "--temperature", how.temperature,
        "by which logits are divided before a token is drawn; 0: always the likeliest (0)");
    app.add_option("--top-k", how.top_k, "draw among the likeliest so many tokens; 0: all (0)");
    app.add_option("--top-p", how.top_p,
                   "draw among the likeliest tokens that have this probability together (1)");
    app.add_option("--min-p", how.min_p,
                   "draw among tokens at least this many times as likely as the likeliest (0)");
    app.add_option("--seed", how.seed, "of drawing (1)");
    app.add_option("--stop", how.stop, "a text that ends generation; may be given again")
        ->allow_extra_args(false);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Prints what a language model says after a prompt, or chats.", "dlprim_generate");
    app.add_option("MODEL", options.model, "language model: GGUF, or a folder with config.json")
        ->required();
    auto* prompt = app.add_option("PROMPT", options.prompt,
                                  "what the text begins with; without it standard input is read");
    auto* file =
        app.add_option("--prompt-file", options.prompt_file, "a file that holds the prompt")
            ->excludes(prompt);
    app.add_option("--prompts", options.prompts_file,
                   "a file of which each line is a prompt; they are answered one after the other")
        ->excludes(prompt)
        ->excludes(file);
    app.add_option("--batch", options.language.batch,
                   "with --prompts: how many are answered at a time (1)")
        ->check(CLI::Range(1, 256))
        ->needs("--prompts");
    auto* chat_flag = app.add_flag("--chat", options.chat,
                                   "chat by the model's template: a prompt is a turn; without one, "
                                   "lines of standard input are");
    app.add_option("--system", options.system, "what the system says before a chat")
        ->needs(chat_flag);
    app.add_option("--template-variables", options.template_variables.variables,
                   "further variables of the template, a JSON object")
        ->needs(chat_flag);
    tools::add_device_option(app, options.device);
    add_drawing(app, options.generate);
    app.add_option("--lora", options.language.adapter,
                   "adapter of the model: a folder that dlprim_train or peft wrote");
    app.add_option("--context", options.language.context,
                   "the most tokens that are remembered (the model's, at most 8192)");
    app.add_flag("--plain", options.plain,
                 "special tokens in the prompt, such as <|im_start|>, are text");
    app.add_flag("--log-probabilities", options.generate.log_probabilities,
                 "with --json: log_probabilities of the tokens");
    app.add_flag("--json", options.json, "print one object with text, tokens and figures a text");
    app.add_flag("--memory", options.memory,
                 "print what the model takes, and the longest context that fits, and end");
    app.add_option("--precision", options.precision,
                   "to which products may be rounded: fp32, tf32, fp16 or bf16 (fp32)")
        ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}));
    return tools::run_command(app, argc, argv, [&] {
        options.has_prompt = prompt->count() > 0;
        generate(options);
    });
}

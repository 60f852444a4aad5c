// SPDX-License-Identifier: MIT
// dlprim_generate: prints what a language model says after a prompt, as it is made, and how fast it
// was.
#include "common.hpp"

#include <dlprim/language.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

using namespace dlprim;

namespace {

struct Options {
    std::string model, prompt, prompt_file, device;
    std::string precision = "fp32";
    bool has_prompt = false, plain = false, json = false;
    LanguageModelOptions language;
    GenerateOptions generate;
};

volatile std::sig_atomic_t interrupted = 0;

/// The first Ctrl-C ends the text, the second one the process.
void end_text_when_interrupted() {
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    // A shell starts commands in the background with SIGINT ignored, which stays so.
    if (sigaction(SIGINT, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, nullptr);
}

std::string read_prompt(const Options& options) {
    if (options.has_prompt) return options.prompt;
    std::ifstream file;
    if (!options.prompt_file.empty()) {
        file.open(options.prompt_file, std::ios::binary);
        if (!file) throw Error(ErrorKind::io, "'" + options.prompt_file + "' cannot be read");
    }
    std::istream& from = options.prompt_file.empty() ? std::cin : file;
    return {std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>()};
}

double rate(double count, double seconds) {
    return seconds > 0 ? count / seconds : 0;
}

/// The time per token begins with the first one, which the prompt's time has.
double tokens_per_second(const GenerateResult& result) {
    const auto later = static_cast<double>(result.tokens.size()) - 1;
    return later > 0 ? rate(later, result.seconds) : 0;
}

double prompt_per_second(const GenerateResult& result) {
    return rate(static_cast<double>(result.prompt_tokens), result.prompt_seconds);
}

void print_json(const LanguageModel& model, const GenerateResult& result) {
    nlohmann::ordered_json json;
    json["text"] = result.text;
    json["tokens"] = result.tokens;
    json["end"] = name_of(result.end);
    json["prompt_tokens"] = result.prompt_tokens;
    json["prompt_tokens_per_s"] = prompt_per_second(result);
    json["tokens_per_s"] = tokens_per_second(result);
    json["first_token_ms"] = result.first_token_seconds * 1e3;
    json["peak_bytes"] = model.peak_bytes();
    json["device"] = model.context().info().str();
    // A text that ends within a character is not UTF-8.
    std::puts(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
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

void generate(Options& options) {
    options.language.precision = parse_precision(options.precision);
    options.language.progress = tools::terminal_progress();
    options.generate.special = !options.plain;
    const Context context(options.device);
    LanguageModel model(context, options.model, options.language);
    const std::string prompt = read_prompt(options);
    end_text_when_interrupted();
    const auto print = [&](std::string_view text) {
        if (!options.json) {
            std::fwrite(text.data(), 1, text.size(), stdout);
            std::fflush(stdout);
        }
        return interrupted == 0 && std::ferror(stdout) == 0;
    };
    const GenerateResult result = model.generate(prompt, options.generate, print);
    if (options.json) return print_json(model, result);
    std::puts("");
    print_figures(model, result);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    GenerateOptions& how = options.generate;
    CLI::App app("Prints what a language model says after a prompt.", "dlprim_generate");
    app.add_option("MODEL", options.model, "language model: GGUF, or a folder with config.json")
        ->required();
    auto* prompt = app.add_option("PROMPT", options.prompt,
                                  "what the text begins with; without it standard input is read");
    app.add_option("--prompt-file", options.prompt_file, "a file that holds the prompt")
        ->excludes(prompt);
    tools::add_device_option(app, options.device);
    app.add_option("--length", how.length, "the most tokens that are made (128)")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
    app.add_option(
        "--temperature", how.temperature,
        "by which logits are divided before a token is drawn; 0: always the likeliest (0)");
    app.add_option("--top-k", how.top_k, "draw among the likeliest so many tokens; 0: all (0)");
    app.add_option("--top-p", how.top_p,
                   "draw among the likeliest tokens that have this probability together (1)");
    app.add_option("--seed", how.seed, "of drawing (1)");
    app.add_option("--stop", how.stop, "a text that ends generation; may be given again");
    app.add_option("--context", options.language.context,
                   "the most tokens that are remembered (the model's, at most 8192)");
    app.add_flag("--plain", options.plain,
                 "special tokens in the prompt, such as <|im_start|>, are text");
    app.add_flag("--json", options.json, "print one object with text, tokens and figures");
    app.add_option("--precision", options.precision,
                   "to which products may be rounded: fp32, tf32, fp16 or bf16 (fp32)")
        ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}));
    return tools::run_command(app, argc, argv, [&] {
        options.has_prompt = prompt->count() > 0;
        generate(options);
    });
}

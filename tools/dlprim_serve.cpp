// SPDX-License-Identifier: MIT
// dlprim_serve: a language model or an encoder behind OpenAI's API, over HTTP. Texts are made side
// by side, in one batch, and embeddings one request after the other. Each thread of the server
// serves one connection, and whatever a client sends concerns its own request alone.
#include "common.hpp"
#include "serve/embedding.hpp"
#include "serve/peer.hpp"
#include "serve/request.hpp"
#include "serve/scheduler.hpp"
#include "serve/turns.hpp"

#include <dlprim/embedding_model.hpp>
#include <dlprim/language.hpp>

#include <httplib.h>
#include <CLI/CLI.hpp>

#include <pthread.h>
#include <sys/socket.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

using namespace dlprim;
using namespace dlprim::tools;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
    std::string model, device, host = "127.0.0.1", key_file, name;
    std::string precision = "fp32";
    int port = 8080, threads = 64, seconds = 600;
    std::int64_t waiting = 48, batch = 0;
    std::uint64_t body_bytes = std::uint64_t{1} << 20;
    bool whole_prompts = false;
    LanguageModelOptions language;
    ServeLimits limits;
};

bool is_loopback(const std::string& host) {
    return host == "127.0.0.1" || host == "localhost" || host == "::1";
}

/// The name in a Host header, without its port.
std::string host_of(const std::string& header) {
    if (header.starts_with('[')) return header.substr(1, header.find(']') - 1);
    return header.substr(0, header.find(':'));
}

/// Takes the same time for all texts of one length.
bool same_key(const std::string& given, const std::string& key) {
    unsigned differs = given.size() == key.size() ? 0 : 1;
    for (std::size_t i = 0; i < given.size(); ++i)
        differs |=
            static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(key[i % key.size()]);
    return differs == 0;
}

std::string read_key(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Error(ErrorKind::io, "'" + path + "' cannot be read");
    std::string key{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
    if (key.size() < 16)
        throw Error(ErrorKind::invalid_argument,
                    "the key in '" + path + "' has fewer than 16 characters");
    return key;
}

/// What is served: one of the two.
struct Models {
    std::optional<LanguageModel> text;
    std::optional<EmbeddingModel> embedding;

    std::int64_t longest() const {
        return text ? text->context_length() : embedding->longest_text();
    }
    LanguageModel& for_text() {
        if (!text)
            throw Error(ErrorKind::unsupported,
                        "the model is an encoder, which makes no text: ask /v1/embeddings");
        return *text;
    }
    EmbeddingModel& for_embeddings() {
        if (!embedding)
            throw Error(ErrorKind::unsupported,
                        "the model makes text, and embeddings need an encoder, such as a BERT");
        return *embedding;
    }
};

class Service {
  public:
    Service(Models& models, const Options& options)
        : models_(models),
          options_(options),
          key_(options.key_file.empty() ? "" : read_key(options.key_file)),
          turns_(options.waiting) {
        if (models.text)
            scheduler_.emplace(*models.text, options.waiting,
                               std::chrono::seconds(options.seconds));
        std::random_device random;
        id_key_ = std::uint64_t{random()} << 32 | random();
        add_routes();
    }

    /// Listens until a signal ends it.
    void run() {
        if (!is_loopback(options_.host) && key_.empty())
            throw Error(ErrorKind::invalid_argument,
                        "host '" + options_.host +
                            "' can be reached from other machines: give a key by --key-file");
        const int port =
            options_.port == 0
                ? server_.bind_to_any_port(options_.host)
                : (server_.bind_to_port(options_.host, options_.port) ? options_.port : -1);
        if (port < 0)
            throw Error(ErrorKind::io, "port " + std::to_string(options_.port) + " of '" +
                                           options_.host + "' cannot be listened on");
        // httplib lets five connections wait to be accepted; clients that come at once are more.
        listen(listener_, SOMAXCONN);
        std::printf("%s listens on http://%s:%d\n", options_.name.c_str(), options_.host.c_str(),
                    port);
        std::fflush(stdout);
        server_.listen_after_bind();
    }
    /// Ends all answers, and run() once it listens. Any other thread may call it, once.
    void stop() {
        turns_.close();
        if (scheduler_) scheduler_->close();
        while (!ended_ && !server_.is_running())
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        if (!ended_) server_.stop();
    }
    /// run() has returned, or failed.
    void end() { ended_ = true; }

  private:
    using Request = httplib::Request;
    using Response = httplib::Response;

    void add_routes();
    /// Whether the request may go on; else the response says why not.
    bool admits(const Request& request, Response& response) const;
    void complete(const Request& request, Response& response, bool chat);
    void embed(const Request& request, Response& response);
    void stream(std::shared_ptr<const ServeRequest> asked, Response& response);

    /// Waits for the texts of a request. `on_event` gets what is made of them, and returns whether
    /// to go on. Returns nothing if it did not, if the client is not there, and if the server ends.
    template <typename IsThere, typename OnEvent>
    std::optional<std::vector<GenerateResult>> follow(Scheduler::Place& place,
                                                      const ServeRequest& asked,
                                                      const IsThere& is_there,
                                                      const OnEvent& on_event) {
        constexpr std::chrono::milliseconds patience(250);
        std::vector<GenerateResult> results(asked.prompts.size());
        for (std::size_t left = results.size(); left > 0;) {
            const std::optional<Scheduler::Event> event = place.next(patience);
            if (scheduler_->closed() || !is_there()) return std::nullopt;
            if (!event) continue;
            if (!on_event(*event)) return std::nullopt;
            if (!event->result) continue;
            results[event->index] = *event->result;
            --left;
        }
        return results;
    }

    Answer answer_for(const ServeRequest& asked) {
        const std::uint64_t number = next_id_.fetch_add(1) ^ id_key_;
        char id[17];
        std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(number));
        return {models_.for_text(), asked, options_.name, id,
                static_cast<std::int64_t>(std::time(nullptr))};
    }

    static void fail(Response& response, int status, std::string_view message,
                     std::string_view type = "invalid_request_error") {
        response.status = status;
        response.set_content(error_json(message, type), "application/json");
    }
    static void refuse_place(Response& response) {
        fail(response, 503, "too many requests wait: try again later", "server_error");
    }
    static void fail(Response& response, const std::exception& error) {
        const auto* const ours = dynamic_cast<const Error*>(&error);
        const bool asked_wrongly =
            ours != nullptr &&
            (ours->kind() == ErrorKind::invalid_argument ||
             ours->kind() == ErrorKind::unsupported || ours->kind() == ErrorKind::not_found);
        fail(response, asked_wrongly ? 400 : 500, text_of(error),
             asked_wrongly ? "invalid_request_error" : "server_error");
    }

    Models& models_;
    const Options& options_;
    const std::string key_;
    Turns turns_;                         ///< of embeddings
    std::optional<Scheduler> scheduler_;  ///< of texts
    std::atomic<bool> ended_ = false;
    httplib::Server server_;
    int listener_ = -1;  ///< its socket
    std::uint64_t id_key_ = 0;
    std::atomic<std::uint64_t> next_id_ = 0;
    std::mutex encoding_;  ///< a model is used by one thread at a time
};

void Service::add_routes() {
    const int threads = options_.threads;
    server_.set_socket_options([this](int socket) {
        httplib::default_socket_options(socket);
        listener_ = socket;
    });
    server_.new_task_queue = [threads] {
        return new httplib::ThreadPool(static_cast<std::size_t>(threads));
    };
    constexpr time_t patience = 5;  // seconds
    server_.set_read_timeout(patience);
    server_.set_write_timeout(patience);
    server_.set_keep_alive_timeout(patience);
    server_.set_payload_max_length(options_.body_bytes);
    server_.set_exception_handler([](const Request&, Response& response, std::exception_ptr error) {
        try {
            std::rethrow_exception(error);
        } catch (const std::exception& known) {
            fail(response, known);
        } catch (...) {
            fail(response, 500, "the server failed", "server_error");
        }
    });
    server_.set_error_handler([](const Request&, Response& response) {
        if (!response.body.empty()) return;
        fail(response, response.status,
             response.status == 404   ? "there is no such path"
             : response.status == 413 ? "the body is too large"
                                      : "the request is wrong");
    });
    server_.set_pre_routing_handler([this](const Request& request, Response& response) {
        return request.path == "/health" || admits(request, response)
                   ? httplib::Server::HandlerResponse::Unhandled
                   : httplib::Server::HandlerResponse::Handled;
    });
    server_.Get("/health", [this](const Request&, Response& response) {
        nlohmann::ordered_json health{{"status", "ok"}};
        if (scheduler_) {
            const Scheduler::Load load = scheduler_->load();
            health["running"] = load.running;
            health["waiting"] = load.waiting;
        }
        response.set_content(text_of_json(health), "application/json");
    });
    server_.Get("/v1/models", [this](const Request&, Response& response) {
        const nlohmann::ordered_json model{{"id", options_.name},
                                           {"object", "model"},
                                           {"created", 0},
                                           {"owned_by", "dlprim"},
                                           {"context_length", models_.longest()}};
        response.set_content(text_of_json({{"object", "list"}, {"data", {model}}}),
                             "application/json");
    });
    server_.Post("/v1/completions", [this](const Request& request, Response& response) {
        complete(request, response, false);
    });
    server_.Post("/v1/chat/completions", [this](const Request& request, Response& response) {
        complete(request, response, true);
    });
    server_.Post("/v1/embeddings",
                 [this](const Request& request, Response& response) { embed(request, response); });
}

bool Service::admits(const Request& request, Response& response) const {
    if (!key_.empty()) {
        constexpr std::string_view scheme = "Bearer ";
        const std::string given = request.get_header_value("Authorization");
        if (given.starts_with(scheme) && same_key(given.substr(scheme.size()), key_)) return true;
        fail(response, 401, "the key is missing or wrong: send 'Authorization: Bearer KEY'",
             "authentication_error");
        return false;
    }
    // Pages in a browser reach a server of its machine, under names of their own and without asking
    // before they send what is not called JSON.
    if (!is_loopback(host_of(request.get_header_value("Host")))) {
        fail(response, 403, "the server answers under the names of its own machine alone");
        return false;
    }
    if (request.method == "POST" &&
        !request.get_header_value("Content-Type").starts_with("application/json")) {
        fail(response, 415, "the body's Content-Type must be application/json");
        return false;
    }
    return true;
}

void Service::complete(const Request& request, Response& response, bool chat) {
    auto asked = std::make_shared<ServeRequest>();
    {
        const std::lock_guard lock(encoding_);
        *asked = parse_request(models_.for_text(), request.body, chat, options_.limits);
    }
    asked->options.remember = !options_.whole_prompts;
    if (asked->stream) return stream(std::move(asked), response);
    Scheduler::Place place(*scheduler_, asked);
    if (!place) return refuse_place(response);
    const Peer client(request.remote_addr, request.remote_port);
    const auto results = follow(
        place, *asked, [&] { return client.is_there(); },
        [](const Scheduler::Event&) { return true; });
    if (!results) return fail(response, 503, "the server ends", "server_error");
    response.set_content(text_of_json(answer_for(*asked).whole(*results)), "application/json");
}

void Service::embed(const Request& request, Response& response) {
    EmbeddingModel& model = models_.for_embeddings();
    EmbeddingRequest asked;
    {
        const std::lock_guard lock(encoding_);
        asked = parse_embedding_request(model, request.body, options_.limits);
    }
    Turns::Place place(turns_);
    if (!place || !place.wait()) return refuse_place(response);
    const std::vector<float> rows = model.embed_tokens(asked.texts);
    response.set_content(
        text_of_json(embedding_answer(asked, rows, model.features(), options_.name)),
        "application/json");
}

/// Server-sent events. The status is sent before the first token is known, so that what fails later
/// is an event, too.
void Service::stream(std::shared_ptr<const ServeRequest> asked, Response& response) {
    const auto place = std::make_shared<Scheduler::Place>(*scheduler_, asked);
    if (!*place) return refuse_place(response);
    response.set_chunked_content_provider(
        "text/event-stream", [this, asked, place](std::size_t, httplib::DataSink& sink) {
            const auto send = [&](const std::string& data) {
                const std::string event = "data: " + data + "\n\n";
                return sink.is_writable() && sink.write(event.data(), event.size());
            };
            bool there = true;  // whether the client is
            try {
                const Answer made = answer_for(*asked);
                if (asked->chat && !send(text_of_json(made.opening()))) return false;
                const auto results = follow(
                    *place, *asked, [&] { return sink.is_writable(); },
                    [&](const Scheduler::Event& event) {
                        const std::optional<GeneratedPiece>& piece = event.piece;
                        if (piece && (!piece->text.empty() || asked->options.log_probabilities))
                            there = send(text_of_json(made.part(event.index, *piece)));
                        if (there && event.result)
                            there = send(text_of_json(made.closing(event.index, *event.result)));
                        return there;
                    });
                if (!results) return false;
                if (asked->include_usage) there = send(text_of_json(made.usage_part(*results)));
            } catch (const std::exception& error) {
                there = there && send(error_json(text_of(error), "server_error"));
            }
            if (!there || !send("[DONE]")) return false;
            sink.done();
            return true;
        });
}

Models open_models(const Context& context, const Options& options) {
    Models models;
    LanguageModelOptions how = options.language;
    if (!is_embedding_model(options.model)) {
        // On a GPU a step takes about the same time for four texts; on a processor one text alone
        // would take longer.
        const std::int64_t usual = context.info().kind == DeviceKind::gpu ? 4 : 1;
        how.batch = options.batch > 0 ? options.batch : usual;
        for (;; how.batch /= 2) {
            models.text.emplace(context, options.model, how);
            if (options.batch > 0 || how.batch == 1) return models;
            const LanguageModelMemory memory = models.text->memory();
            if (memory.device == 0 || memory.longest_context == models.text->context_length())
                return models;
        }
    }
    if (!how.adapter.empty() || how.context != 0 || options.batch > 0)
        throw Error(ErrorKind::invalid_argument,
                    "'" + options.model +
                        "' is an encoder, which takes no --lora, no --context and no --batch");
    models.embedding.emplace(
        context, options.model,
        EmbeddingModelOptions{.precision = how.precision, .progress = how.progress});
    return models;
}

void serve(Options& options) {
    // SIGINT and SIGTERM arrive at a thread that waits for them, and at none of those that are made
    // here.
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGUSR1);  // by which the waiting thread is ended below
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    options.language.precision = parse_precision(options.precision);
    options.language.progress = terminal_progress();
    if (options.name.empty()) options.name = std::filesystem::path(options.model).stem().string();
    const Context context(options.device);
    Models models = open_models(context, options);
    Service service(models, options);
    std::thread waits([&] {
        int signal = 0;
        sigwait(&ends, &signal);
        service.stop();
    });
    const auto end = [&] {
        service.end();
        pthread_kill(waits.native_handle(), SIGUSR1);
        waits.join();
    };
    try {
        service.run();
    } catch (...) {
        end();
        throw;
    }
    end();
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app(
        "Serves a language model, or an encoder for embeddings, over HTTP, by OpenAI's API.",
        "dlprim_serve");
    app.add_option("MODEL", options.model, "model: GGUF, or a folder with config.json")->required();
    add_device_option(app, options.device);
    app.add_option("--host", options.host,
                   "the address that is listened on (127.0.0.1); others than those of this machine "
                   "alone need a key");
    app.add_option("--port", options.port, "the port; 0: one that is free (8080)")
        ->check(CLI::Range(0, 65535));
    app.add_option("--key-file", options.key_file,
                   "a file with the key that requests must have, as 'Authorization: Bearer KEY'");
    app.add_option("--name", options.name, "what answers call the model (its file's name)");
    app.add_option("--lora", options.language.adapter,
                   "adapter of the model: a folder that dlprim_train or peft wrote");
    app.add_option("--context", options.language.context,
                   "the most tokens that are remembered (the model's, at most 8192)");
    app.add_option(
           "--batch", options.batch,
           "how many texts are made at a time (on GPUs 4, or fewer where memory is short; else 1)")
        ->check(CLI::Range(1, 256));
    app.add_option("--most-tokens", options.limits.length, "the most tokens of an answer (4096)")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
    app.add_option("--most-waiting", options.waiting,
                   "how many requests wait or run at a time; others are refused (48)")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
    app.add_option("--most-seconds", options.seconds, "after which an answer ends (600)")
        ->check(CLI::Range(1, 1 << 20));
    app.add_option("--most-bytes", options.body_bytes, "of a request's body (1048576)")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30));
    app.add_option("--threads", options.threads, "connections that are served at a time (64)")
        ->check(CLI::Range(1, 4096));
    app.add_flag("--whole-prompts", options.whole_prompts,
                 "read every prompt whole, even if the last text began with the same tokens");
    app.add_option("--precision", options.precision,
                   "to which products may be rounded: fp32, tf32, fp16 or bf16 (fp32)")
        ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}));
    return run_command(app, argc, argv, [&] { serve(options); });
}

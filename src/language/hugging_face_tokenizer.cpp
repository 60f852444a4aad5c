// SPDX-License-Identifier: MIT
// tokenizer.json and the files beside it.
#include "language/hugging_face_tokenizer.hpp"

#include "base/base64.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "language/sentencepiece.hpp"
#include "language/splitter.hpp"
#include "language/wordpiece.hpp"

#include <algorithm>
#include <filesystem>

namespace dlprim::language {

namespace {

bool is_true(const JsonView& object, std::string_view key, bool otherwise = false) {
    const std::optional<JsonView> found = object.find_value(key);
    return found ? found->boolean() : otherwise;
}

[[noreturn]] void not_supported(const JsonView& view, const std::string& what) {
    try {
        view.fail(what);
    } catch (const Error& error) {  // the same sentence, which names the line
        fail(ErrorKind::unsupported, error.what());
    }
}

/// The regular expression in ICU's syntax. White space and word characters are Unicode's in both,
/// and not the same ones.
std::string translated(std::string_view expression) {
    std::string made;
    for (std::size_t i = 0; i < expression.size(); ++i) {
        if (expression[i] != '\\' || i + 1 == expression.size()) {
            made += expression[i];
            continue;
        }
        const char kind = expression[++i];
        if (kind == 's' || kind == 'S')
            made += kind == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
        else
            made.append({'\\', kind});
    }
    return made;
}

std::string escaped(std::string_view text) {
    std::string made;
    for (const char c : text) {
        if (!ascii::is_word(c) && static_cast<unsigned char>(c) < 0x80) made += '\\';
        made += c;
    }
    return made;
}

class TokenizerReader {
  public:
    TokenizerReader(const JsonView& root, std::int64_t vocabulary)
        : root_(root), vocabulary_(vocabulary) {}

    TokenizerTables read();

  private:
    void read_model(const JsonView& model);
    void read_merges(const JsonView& merges);
    void read_word_pieces(const JsonView& model);
    void read_unigrams(const JsonView& model);
    void read_added(const JsonView& added);
    void read_normalizer(const JsonView& step);
    void read_bert_normalizer(const JsonView& step);
    bool read_unigram_normalizer(const JsonView& step);
    void read_splitter(const JsonView& step);
    void read_split(const JsonView& step);
    void read_template(const JsonView& step);
    std::optional<std::int64_t> special_of(const JsonView& step, const JsonView& part) const;
    /// Calls `read` for a step, or for those of a Sequence, one after the other.
    template <typename Read>
    void each(const JsonView& step, const char* list, const Read& read) {
        if (step.at("type").text() != "Sequence") return read(step);
        for (const JsonView& one : step.at(list).array()) read(one);
    }
    std::size_t place(const JsonView& number) const {
        if (number.integer() < 0 || number.integer() >= vocabulary_)
            number.fail(
                cat("is ", number.integer(), ", and the model has ", vocabulary_, " tokens"));
        return static_cast<std::size_t>(number.integer());
    }
    /// The same, of a token that has not been read yet.
    std::size_t free_place(const JsonView& number) const {
        const std::size_t at = place(number);
        if (tables_.kinds[at] != token_kind::unused)
            number.fail("is the number of another token, too");
        return at;
    }
    /// Of a token of the vocabulary.
    std::int64_t kind_of(const std::string& name) const {
        const bool is_byte = name.size() == 6 && name.starts_with("<0x") && name.ends_with('>');
        return byte_fallback_ && is_byte ? token_kind::byte : token_kind::plain;
    }
    void start_tokens() {
        tables_.tokens.resize(static_cast<std::size_t>(vocabulary_));
        tables_.kinds.assign(tables_.tokens.size(), token_kind::unused);
    }

    const JsonView root_;
    const std::int64_t vocabulary_;
    bool byte_level_ = false, byte_fallback_ = false, spaces_marked_ = false;
    bool words_are_cut_ = false;  ///< at spaces and signs, as BERT does
    TokenizerTables tables_;
};

void TokenizerReader::read_model(const JsonView& model) {
    const std::optional<JsonView> type = model.find_value("type");
    if (type && type->text() == "WordPiece") return read_word_pieces(model);
    if (type && type->text() == "Unigram") return read_unigrams(model);
    if (type && type->text() != "BPE")
        not_supported(*type,
                      cat("is '", type->text(), "'; supported are BPE, Unigram and WordPiece"));
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
        if (const auto found = model.find_value(affix); found && !found->text().empty())
            not_supported(*found, "is not empty, which is not supported");
    byte_fallback_ = is_true(model, "byte_fallback");
    tables_.whole_pieces = is_true(model, "ignore_merges");
    start_tokens();
    for (const auto& [name, number] : model.at("vocab").object()) {
        const std::size_t at = free_place(number);
        tables_.tokens[at] = name;
        tables_.kinds[at] = kind_of(name);
        if (const auto unk = model.find_value("unk_token"); unk && unk->text() == name)
            tables_.kinds[at] = token_kind::unknown;
    }
    read_merges(model.at("merges"));
}

void TokenizerReader::read_word_pieces(const JsonView& model) {
    tables_.model = "bert";
    // What is not named is not done.
    tables_.word_piece = {false, false, false, false, tables_.word_piece.longest_word};
    if (const auto longest = model.find_value("max_input_chars_per_word")) {
        constexpr std::int64_t most = 500;  // the time for a word grows with its square
        tables_.word_piece.longest_word = longest->integer();
        if (longest->integer() < 1 || longest->integer() > most)
            longest->fail(cat("is ", longest->integer(), ", and must be from 1 to ", most));
    }
    const auto mark = model.find_value("continuing_subword_prefix");
    const std::string& unknown = model.at("unk_token").text();
    start_tokens();
    for (const auto& [name, number] : model.at("vocab").object()) {
        const std::size_t at = free_place(number);
        tables_.tokens[at] = word_piece_name(name, mark ? mark->text() : "##");
        tables_.kinds[at] = token_kind::plain;
        if (name == unknown) tables_.unknown = static_cast<std::int64_t>(at);
    }
    if (!tables_.unknown) model.at("unk_token").fail("is no token of the vocabulary");
}

/// A list of pairs of a token and its score.
void TokenizerReader::read_unigrams(const JsonView& model) {
    tables_.model = "t5";
    byte_fallback_ = is_true(model, "byte_fallback");
    start_tokens();
    tables_.scores.resize(tables_.tokens.size());
    const std::vector<JsonView> tokens = model.at("vocab").array();
    if (std::ssize(tokens) > vocabulary_)
        model.at("vocab").fail(
            cat("has ", tokens.size(), " tokens, and the model has ", vocabulary_));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::vector<JsonView> pair = tokens[i].array();
        if (pair.size() != 2) tokens[i].fail("must be a token and its score");
        tables_.tokens[i] = pair[0].text();
        tables_.scores[i] = pair[1].number();
        tables_.kinds[i] = kind_of(tables_.tokens[i]);
    }
    if (const auto unknown = model.find_value("unk_id"))
        tables_.unknown = static_cast<std::int64_t>(place(*unknown));
}

/// A merge is "left right" in older files and ["left", "right"] in newer ones.
void TokenizerReader::read_merges(const JsonView& merges) {
    for (const JsonView& merge : merges.array()) {
        if (merge.is_text()) {
            tables_.merges.push_back(merge.text());
            continue;
        }
        const std::vector<JsonView> pair = merge.array();
        if (pair.size() != 2) merge.fail("must be of two tokens");
        if (pair[0].text().find(' ') != std::string::npos)
            not_supported(merge, "has a space in a token, which is not supported");
        tables_.merges.push_back(cat(pair[0].text(), " ", pair[1].text()));
    }
}

void TokenizerReader::read_added(const JsonView& added) {
    for (const JsonView& token : added.array()) {
        const std::size_t at = place(token.at("id"));
        const std::string& name = token.at("content").text();
        const bool named =
            tables_.tokens[at] == name || tables_.tokens[at] == cat(space_mark, name);
        if (!tables_.tokens[at].empty() && !named)
            token.at("id").fail("is the number of another token, too");
        if (is_true(token, "single_word"))
            not_supported(token, "is found as a whole word only, which is not supported");
        tables_.tokens[at] = name;
        tables_.kinds[at] =
            is_true(token, "special") ? token_kind::control : token_kind::user_defined;
        const bool left = is_true(token, "lstrip"), right = is_true(token, "rstrip");
        if (left || right) tables_.strips[static_cast<std::int64_t>(at)] = {left, right};
    }
}

void TokenizerReader::read_bert_normalizer(const JsonView& step) {
    WordPieceRules& rules = tables_.word_piece;
    rules.clean = is_true(step, "clean_text", true);
    rules.chinese = is_true(step, "handle_chinese_chars", true);
    rules.lower = is_true(step, "lowercase", true);
    rules.strip_accents = is_true(step, "strip_accents", rules.lower);
}

/// False for a step that Unigram does not take, or not in this order.
bool TokenizerReader::read_unigram_normalizer(const JsonView& step) {
    UnigramRules& rules = tables_.unigram;
    const std::string& type = step.at("type").text();
    const bool is_stripped = rules.strip_left || rules.strip_right;
    if (type == "Precompiled" && rules.characters.empty() && !is_stripped && !rules.join_spaces) {
        const JsonView table = step.at("precompiled_charsmap");
        const std::optional<std::string> bytes = from_base64(table.text());
        if (!bytes) table.fail("is not text in base64");
        rules.characters = *bytes;
        return true;
    }
    if (type == "Strip" && !rules.join_spaces) {
        rules.strip_left = is_true(step, "strip_left", true);
        rules.strip_right = is_true(step, "strip_right", true);
        return true;
    }
    if (type == "Replace" && step.at("pattern").find_value("Regex") &&
        step.at("pattern").at("Regex").text() == " {2,}") {
        // The sign for a space is what spaces become next.
        rules.join_spaces =
            step.at("content").text() == " " || step.at("content").text() == space_mark;
        return rules.join_spaces;
    }
    return false;
}

void TokenizerReader::read_normalizer(const JsonView& step) {
    const std::string& type = step.at("type").text();
    if (tables_.model == "t5" && read_unigram_normalizer(step)) return;
    if (type == "BertNormalizer" && tables_.model == "bert") {
        read_bert_normalizer(step);
    } else if (type == "NFC" && tables_.model != "t5") {
        tables_.composed = true;
    } else if (type == "Prepend" && step.at("prepend").text() == space_mark && !spaces_marked_) {
        tables_.space = TokenizerTables::Space::each;
    } else if (type == "Replace" && step.at("content").text() == space_mark &&
               step.at("pattern").find_value("String") &&
               step.at("pattern").at("String").text() == " ") {
        spaces_marked_ = true;
    } else {
        not_supported(step, cat("has the type ", type,
                                ", with these options, which is not supported; supported are NFC, "
                                "spaces as SentencePiece marks them, and for Unigram Precompiled, "
                                "Strip and what makes several spaces one, in this order"));
    }
}

void TokenizerReader::read_split(const JsonView& step) {
    const JsonView pattern = step.at("pattern");
    const std::optional<JsonView> text = pattern.find_value("String");
    if (spaces_marked_ && text && text->text() == " ") return;  // there are none any more
    const std::string& behavior = step.at("behavior").text();
    const bool inverted = is_true(step, "invert");
    // The expressions of models cover all text: then it does not matter what becomes of the rest.
    if (behavior != "Isolated" && !(behavior == "Removed" && inverted))
        not_supported(step.at("behavior"),
                      cat("is ", behavior, ", which is not supported; supported is Isolated"));
    tables_.patterns.push_back(text ? escaped(text->text())
                                    : translated(pattern.at("Regex").text()));
}

void TokenizerReader::read_splitter(const JsonView& step) {
    const std::string& type = step.at("type").text();
    if (type == "BertPreTokenizer" && tables_.model == "bert") {
        words_are_cut_ = true;
    } else if (type == "WhitespaceSplit" && tables_.model == "t5" && !spaces_marked_) {
        tables_.unigram.split_spaces = true;
    } else if (type == "ByteLevel" && tables_.model != "t5") {
        byte_level_ = true;
        if (is_true(step, "add_prefix_space", true)) {
            if (!tables_.patterns.empty())
                not_supported(step, "puts spaces before pieces, which is not supported");
            tables_.space = TokenizerTables::Space::each_without;
        }
        if (is_true(step, "use_regex", true))
            tables_.patterns.push_back(std::string(gpt2_pattern()));
    } else if (type == "Digits") {
        tables_.patterns.emplace_back(is_true(step, "individual_digits") ? "\\p{N}" : "\\p{N}+");
    } else if (type == "Split") {
        read_split(step);
    } else if (type == "Metaspace" && step.at("replacement").text() == space_mark) {
        spaces_marked_ = true;
        const std::optional<JsonView> scheme = step.find_value("prepend_scheme");
        const std::string where = scheme ? scheme->text() : "always";
        using Space = TokenizerTables::Space;
        tables_.space = where == "always"  ? Space::each_without
                        : where == "first" ? Space::first_without
                                           : Space::none;
        if (is_true(step, "split", true))
            tables_.patterns.push_back(cat(space_mark, "[^", space_mark, "]*"));
    } else {
        not_supported(step, cat("has the type ", type,
                                ", which is not supported; supported are "
                                "ByteLevel, Digits, Split and Metaspace, WhitespaceSplit for "
                                "Unigram, and BertPreTokenizer for WordPiece"));
    }
}

/// The number of a template's part that is a special token.
std::optional<std::int64_t> TokenizerReader::special_of(const JsonView& step,
                                                        const JsonView& part) const {
    const std::optional<JsonView> special = part.find_value("SpecialToken");
    if (!special) return std::nullopt;
    const JsonView token = step.at("special_tokens").at(special->at("id").text());
    const std::vector<JsonView> numbers = token.at("ids").array();
    if (numbers.size() != 1) token.fail("must have one number");
    return static_cast<std::int64_t>(place(numbers[0]));
}

/// What a text begins and ends with.
void TokenizerReader::read_template(const JsonView& step) {
    const std::string& type = step.at("type").text();
    std::optional<std::int64_t> begin;
    if (type == "TemplateProcessing") {
        const std::vector<JsonView> parts = step.at("single").array();
        if (parts.empty()) return;
        begin = special_of(step, parts.front());
        if (parts.size() > 1) tables_.separator = special_of(step, parts.back());
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
        for (const char* which : {"cls", "sep"}) {
            const std::vector<JsonView> pair = step.at(which).array();
            if (pair.size() != 2) step.at(which).fail("must be a token and its number");
            (*which == 'c' ? begin : tables_.separator) = static_cast<std::int64_t>(place(pair[1]));
        }
    }
    if (!begin) return;
    tables_.begin = begin;
    tables_.add_begin = true;
}

TokenizerTables TokenizerReader::read() {
    read_model(root_.at("model"));
    if (const auto added = root_.find_value("added_tokens")) read_added(*added);
    if (const auto step = root_.find_value("normalizer"))
        each(*step, "normalizers", [&](const JsonView& one) { read_normalizer(one); });
    if (const auto step = root_.find_value("pre_tokenizer"))
        each(*step, "pretokenizers", [&](const JsonView& one) { read_splitter(one); });
    if (const auto step = root_.find_value("post_processor"))
        each(*step, "processors", [&](const JsonView& one) { read_template(one); });
    if (tables_.model == "bert") {
        if (!words_are_cut_ || byte_level_ || spaces_marked_)
            not_supported(root_.at("model"), "is WordPiece without BertPreTokenizer");
        return std::move(tables_);
    }
    if (byte_level_ == spaces_marked_)
        not_supported(root_.at("model"), "is neither byte-level BPE nor SentencePiece's");
    if (tables_.model.empty()) tables_.model = byte_level_ ? "gpt2" : "llama";
    return std::move(tables_);
}

}  // namespace

TokenizerTables parse_tokenizer(std::string_view text, const std::string& source,
                                std::int64_t vocabulary) {
    const JsonDocument document(text, source, {.bytes = std::size_t{256} << 20});
    return TokenizerReader(document.root(), vocabulary).read();
}

TokenizerTables parse_vocabulary(std::string_view lines, const JsonView& how,
                                 std::int64_t vocabulary) {
    TokenizerTables tables;
    tables.model = "bert";
    WordPieceRules& rules = tables.word_piece;
    rules.chinese = is_true(how, "tokenize_chinese_chars", true);
    rules.lower = is_true(how, "do_lower_case", true);
    rules.strip_accents = is_true(how, "strip_accents", rules.lower);
    for (std::string& line : split(lines, '\n')) {
        if (line.ends_with('\r')) line.pop_back();
        tables.tokens.push_back(std::move(line));
    }
    if (tables.tokens.back().empty()) tables.tokens.pop_back();  // behind the last line
    tables.kinds.assign(tables.tokens.size(), token_kind::plain);
    const auto special = [&](const char* key, std::string name) -> std::optional<std::int64_t> {
        if (const auto own = how.find_value(key))
            name = own->is_object() ? own->at("content").text() : own->text();
        const auto found = std::find(tables.tokens.begin(), tables.tokens.end(), name);
        if (found == tables.tokens.end()) return std::nullopt;
        const auto number = found - tables.tokens.begin();
        tables.kinds[static_cast<std::size_t>(number)] = token_kind::control;
        return number;
    };
    tables.unknown = special("unk_token", "[UNK]");
    tables.begin = special("cls_token", "[CLS]");
    tables.separator = special("sep_token", "[SEP]");
    tables.add_begin = tables.begin.has_value();
    special("pad_token", "[PAD]");
    special("mask_token", "[MASK]");
    for (std::size_t i = 0; i < tables.tokens.size(); ++i)
        if (tables.kinds[i] == token_kind::plain)
            tables.tokens[i] = word_piece_name(tables.tokens[i], "##");
    const auto size = std::max(tables.tokens.size(), static_cast<std::size_t>(vocabulary));
    tables.tokens.resize(size);
    tables.kinds.resize(size, token_kind::unused);
    return tables;
}

TokenizerTables read_tokenizer(const std::string& folder, const JsonView& config,
                               std::int64_t vocabulary) {
    const std::string path = folder + "/tokenizer.json", pieces = folder + "/tokenizer.model",
                      how = folder + "/generation_config.json", words = folder + "/vocab.txt",
                      rules = folder + "/tokenizer_config.json";
    const auto exists = [](const std::string& file) {
        std::error_code error;
        return std::filesystem::exists(file, error);
    };
    TokenizerTables tables;
    if (exists(path)) {
        tables = parse_tokenizer(read_file(path), path, vocabulary);
    } else if (exists(pieces)) {
        tables = parse_sentencepiece(read_file(pieces), pieces);
        const auto size = std::max(tables.tokens.size(), static_cast<std::size_t>(vocabulary));
        tables.tokens.resize(size);
        tables.scores.resize(size);
        tables.kinds.resize(size, token_kind::unused);
        if (const auto begin = config.find_value("bos_token_id")) tables.begin = begin->integer();
        tables.add_begin = tables.begin.has_value();
    } else if (exists(words)) {
        const JsonDocument document(exists(rules) ? read_file(rules) : "{}", rules);
        tables = parse_vocabulary(read_file(words), document.root(), vocabulary);
    } else {
        fail(ErrorKind::not_found, "the folder '", folder,
             "' has neither tokenizer.json nor tokenizer.model nor vocab.txt");
    }
    const auto add_ends = [&](const JsonView& object) {
        const std::optional<JsonView> ends = object.find_value("eos_token_id");
        if (!ends || !tables.ends.empty()) return;
        if (!ends->is_array()) return tables.ends.push_back(ends->integer());
        for (const JsonView& end : ends->array()) tables.ends.push_back(end.integer());
    };
    if (exists(how)) add_ends(JsonDocument(read_file(how), how).root());
    add_ends(config);
    return tables;
}

std::optional<std::string> read_chat_template(const std::string& folder) {
    const std::string own = folder + "/chat_template.jinja",
                      path = folder + "/tokenizer_config.json";
    std::error_code error;
    if (std::filesystem::exists(own, error)) return read_file(own);
    if (!std::filesystem::exists(path, error)) return std::nullopt;
    const JsonDocument document(read_file(path), path);
    const std::optional<JsonView> found = document.root().find_value("chat_template");
    if (!found) return std::nullopt;
    if (found->is_text()) return found->text();
    // Several, each with a name.
    for (const JsonView& one : found->array())
        if (one.at("name").text() == "default") return one.at("template").text();
    return std::nullopt;
}

}  // namespace dlprim::language

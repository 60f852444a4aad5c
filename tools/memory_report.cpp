// SPDX-License-Identifier: MIT
// Text and picture of a MemoryMap.
#include "memory_report.hpp"

#include "common.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace dlprim::tools {

namespace {

using Entry = MemoryMap::Entry;

std::string mib(std::uint64_t bytes) {
    char text[64];
    std::snprintf(text, sizeof(text), "%.2f MiB", static_cast<double>(bytes) / (1 << 20));
    return text;
}

const char* kind_of(const Entry& entry) {
    switch (entry.kind) {
        case Entry::Kind::scratch:
            return entry.recomputed ? "recomputed" : "tensor";
        case Entry::Kind::workspace:
            return "workspace";
        case Entry::Kind::bound:
            return "bound";
        case Entry::Kind::block:
            return "block";
    }
    return "";
}

bool is_live(const Entry& entry, int step) {
    return entry.first <= step && step <= entry.last;
}

/// Entries that are live in a step, the largest first.
std::vector<const Entry*> live_at(const MemoryMap& map, int step) {
    std::vector<const Entry*> live;
    for (const Entry& entry : map.entries)
        if (is_live(entry, step) && entry.bytes > 0) live.push_back(&entry);
    std::stable_sort(live.begin(), live.end(),
                     [](const Entry* a, const Entry* b) { return a->bytes > b->bytes; });
    return live;
}

/// The step of a phase with the most live bytes, of each phase in its order.
std::vector<int> peaks(const MemoryMap& map) {
    std::vector<int> all;
    for (int i = 0; i < static_cast<int>(map.steps.size()); ++i) {
        const MemoryMap::Step& step = map.steps[static_cast<std::size_t>(i)];
        const auto known = std::find_if(all.begin(), all.end(), [&](int other) {
            return map.steps[static_cast<std::size_t>(other)].phase == step.phase;
        });
        if (known == all.end())
            all.push_back(i);
        else if (step.live_bytes > map.steps[static_cast<std::size_t>(*known)].live_bytes)
            *known = i;
    }
    return all;
}

std::string steps_of(const Entry& entry) {
    return std::to_string(entry.first) + " to " + std::to_string(entry.last);
}

std::string escaped(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        if (c == '<')
            safe += "&lt;";
        else if (c == '>')
            safe += "&gt;";
        else if (c == '&')
            safe += "&amp;";
        else if (c == '"')
            safe += "&quot;";
        else
            safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return safe;
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.2f", value);
    return text;
}

/// What of the peak is made in backward for a second time.
std::string recomputed_text(const MemoryMap& map) {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    for (const Entry& entry : map.entries) {
        if (!entry.recomputed) continue;
        ++count;
        bytes += entry.bytes;
    }
    if (count == 0) return "";
    return std::to_string(count) + (count == 1 ? " tensor, " : " tensors, ") + mib(bytes) +
           " in sum, recomputed in backward";
}

constexpr const char* style = R"(<style>
:root { color-scheme: light dark; --back: #fff; --ink: #222; --faint: #8886; --tensor: #4a90d9; --workspace: #d98a2b; --recomputed: #3f9e6b;
  --line: #c0392b; }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --ink: #ddd; --tensor: #5aa0e8; --workspace: #e09a45; --recomputed: #55b884; --line: #ff7866; } }
body { background: var(--back); color: var(--ink); font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1100px; padding: 0 1em; }
svg { width: 100%; height: auto; display: block; margin: 1em 0; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.tensor { fill: var(--tensor); } .workspace { fill: var(--workspace); } .recomputed { fill: var(--recomputed); }
.tensor, .workspace, .recomputed { fill-opacity: .55; stroke: var(--back); stroke-width: .5; }
.tensor:hover, .workspace:hover, .recomputed:hover { fill-opacity: 1; }
.live { fill: none; stroke: var(--line); stroke-width: 1.5; } .area { fill: var(--line); fill-opacity: .15; }
.axis { stroke: var(--faint); } .step { fill: transparent; } .step:hover { fill: var(--faint); }
table { border-collapse: collapse; } td, th { padding: .1em 1em .1em 0; text-align: left; } td.n { text-align: right; }
</style>
)";

/// Draws a map.
class Picture {
  public:
    explicit Picture(const MemoryMap& map)
        : map_(map), steps_(std::max<std::size_t>(1, map.steps.size())) {}

    /// The live bytes of each step.
    std::string live() const {
        std::uint64_t most = std::max<std::uint64_t>(1, map_.peak_bytes);
        for (const MemoryMap::Step& step : map_.steps) most = std::max(most, step.live_bytes);
        constexpr double height = 160;
        const auto y = [&](std::uint64_t bytes) {
            return top + height * (1 - static_cast<double>(bytes) / static_cast<double>(most));
        };
        std::string line, overlay;
        for (std::size_t i = 0; i < map_.steps.size(); ++i) {
            const MemoryMap::Step& step = map_.steps[i];
            const std::string level = number(y(step.live_bytes));
            line += number(x(i)) + ',' + level + ' ' + number(x(i + 1)) + ',' + level + ' ';
            overlay += "<rect class=\"step\" x=\"" + number(x(i)) + "\" y=\"" + number(top) +
                       "\" width=\"" + number(x(1) - x(0)) + "\" height=\"" + number(height) +
                       "\"><title>step " + std::to_string(i) + ", " + step.phase + ": [" +
                       escaped(step.type) + "] " + escaped(step.name) + "\n" +
                       mib(step.live_bytes) + " live</title></rect>\n";
        }
        std::string svg = open(height);
        svg += "<text x=\"0\" y=\"12\">live bytes, up to " + mib(most) + "</text>\n";
        svg += phases(height);
        svg += "<polygon class=\"area\" points=\"" + number(left) + ',' + number(top + height) +
               ' ' + line + number(left + width) + ',' + number(top + height) + "\"/>\n";
        svg += "<polyline class=\"live\" points=\"" + line + "\"/>\n" + overlay;
        return svg + "</svg>\n";
    }

    /// The tensors in a slab.
    std::string slab(int index) const {
        const std::uint64_t bytes =
            std::max<std::uint64_t>(1, map_.slabs[static_cast<std::size_t>(index)]);
        constexpr double height = 420;
        const double scale = height / static_cast<double>(bytes);
        std::string svg = open(height);
        svg += "<text x=\"0\" y=\"12\">slab " + std::to_string(index) + ", " + mib(bytes) +
               ": tensors over the steps, by their place in it</text>\n" + phases(height);
        for (const Entry& entry : map_.entries) {
            if (entry.slab != index) continue;
            const double tall = std::max(0.4, static_cast<double>(entry.bytes) * scale);
            const double begin = x(static_cast<std::size_t>(std::max(0, entry.first)));
            const double end = x(static_cast<std::size_t>(std::max(0, entry.last)) + 1);
            svg += std::string("<rect class=\"") + kind_of(entry) + "\" x=\"" + number(begin) +
                   "\" y=\"" +
                   number(top + height - static_cast<double>(entry.offset) * scale - tall) +
                   "\" width=\"" + number(end - begin) + "\" height=\"" + number(tall) +
                   "\"><title>" + escaped(entry.name) + "\n" + mib(entry.bytes) + ", steps " +
                   steps_of(entry) + "</title></rect>\n";
        }
        return svg + "</svg>\n";
    }

  private:
    static constexpr double left = 0, width = 1000, top = 20;

    double x(std::size_t step) const {
        return left + width * static_cast<double>(step) / static_cast<double>(steps_);
    }
    static std::string open(double height) {
        return "<svg viewBox=\"0 0 1000 " + number(top + height + 20) +
               "\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">\n";
    }
    /// Names of the phases below the picture, and lines where they begin.
    std::string phases(double height) const {
        std::string svg, last;
        for (std::size_t i = 0; i < map_.steps.size(); ++i) {
            if (map_.steps[i].phase == last) continue;
            last = map_.steps[i].phase;
            const std::string at = number(x(i));
            svg += "<line class=\"axis\" x1=\"" + at + "\" x2=\"" + at + "\" y1=\"" + number(top) +
                   "\" y2=\"" + number(top + height + 16) + "\"/><text x=\"" + number(x(i) + 3) +
                   "\" y=\"" + number(top + height + 14) + "\">" + last + "</text>\n";
        }
        return svg;
    }

    const MemoryMap& map_;
    std::size_t steps_;
};

}  // namespace

std::string memory_text(const MemoryMap& map, const std::string& title) {
    std::string text = "memory of " + title + ", before anything is allocated\n";
    std::uint64_t scratch = 0;
    for (const std::uint64_t bytes : map.slabs) scratch += bytes;
    text += "planned peak      " + mib(map.peak_bytes) + ": what stays " +
            mib(map.persistent_bytes) + ", scratch " + mib(scratch) + "; the limit is " +
            mib(map.limit_bytes) + '\n';
    if (const std::string again = recomputed_text(map); !again.empty()) text += "  " + again + '\n';
    if (map.setup_peak_bytes > map.peak_bytes)
        text += "  " + mib(map.setup_peak_bytes) + " while parameters are packed\n";
    for (const int at : peaks(map)) {
        const MemoryMap::Step& step = map.steps[static_cast<std::size_t>(at)];
        char head[256];
        std::snprintf(head, sizeof(head), "%-12s %14s live at most, in step %d [%s '%s']\n",
                      step.phase.c_str(), mib(step.live_bytes).c_str(), at, step.type.c_str(),
                      step.name.c_str());
        text += head;
        constexpr std::size_t most = 8;
        const std::vector<const Entry*> live = live_at(map, at);
        for (std::size_t i = 0; i < live.size() && i < most; ++i) {
            char line[256];
            std::snprintf(line, sizeof(line), "    %14s  %-10s  steps %-11s  %s\n",
                          mib(live[i]->bytes).c_str(), kind_of(*live[i]),
                          steps_of(*live[i]).c_str(), live[i]->name.c_str());
            text += line;
        }
        std::uint64_t rest = 0;
        for (std::size_t i = most; i < live.size(); ++i) rest += live[i]->bytes;
        if (rest > 0)
            text += "    " + mib(rest) + " in " + std::to_string(live.size() - most) + " more\n";
    }
    return text;
}

std::string memory_html(const MemoryMap& map, const std::string& title) {
    const Picture picture(map);
    const std::string again = recomputed_text(map);
    std::string page =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Memory of " +
        escaped(title) + "</title>\n" + style + "</head><body>\n<h1>Memory of " + escaped(title) +
        "</h1>\n";
    page += "<p>Planned peak " + mib(map.peak_bytes) + ", of which " + mib(map.persistent_bytes) +
            " stay from step to step; the limit is " + mib(map.limit_bytes) + "." +
            (again.empty() ? "" : " " + again + ".") +
            " Hover over a box for its tensor, and over the curve for its step.</p>\n";
    page += picture.live();
    for (std::size_t i = 0; i < map.slabs.size(); ++i) page += picture.slab(static_cast<int>(i));
    page +=
        "<h2>The largest</h2>\n<table><tr><th>name</th><th>kind</th><th>size</th>"
        "<th>steps</th></tr>\n";
    std::vector<const Entry*> entries;
    for (const Entry& entry : map.entries) entries.push_back(&entry);
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry* a, const Entry* b) { return a->bytes > b->bytes; });
    if (entries.size() > 40) entries.resize(40);
    for (const Entry* entry : entries)
        page += "<tr><td>" + escaped(entry->name) + "</td><td>" + kind_of(*entry) +
                "</td><td class=\"n\">" + mib(entry->bytes) + "</td><td>" + steps_of(*entry) +
                "</td></tr>\n";
    return page + "</table>\n</body></html>\n";
}

void report_memory(const MemoryMap& map, const std::string& title, bool text,
                   const std::string& html) {
    if (text) std::fputs(memory_text(map, title).c_str(), stdout);
    std::fflush(stdout);
    if (!html.empty()) write_text(html, memory_html(map, title));
}

}  // namespace dlprim::tools

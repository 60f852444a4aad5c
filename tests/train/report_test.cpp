// SPDX-License-Identifier: MIT
// ReportPage: text that must not become markup, pages read back, and what is left out of long runs.
#include "support/catch.hpp"

#include <dlprim/error.hpp>
#include <dlprim/report.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <vector>

using namespace dlprim;

namespace {

nlohmann::json data_of(const ReportPage& page) {
    return nlohmann::json::parse(report_data(page.html()));
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

}  // namespace

TEST_CASE("Text given to a page comes back as it was and never as markup") {
    const std::string hostile = "</script><script>alert(1)</script><!-- \"'&amp;";
    ReportPage page(hostile, hostile);
    page.add_figure(hostile, hostile);
    page.add_table(hostile, {{hostile, hostile}});
    const std::string html = page.html();
    CHECK(count(html, "<script") == 2);
    CHECK(count(html, "</script") == 2);
    CHECK(count(html, "<!--") == 0);
    CHECK(html.find("<h1>&lt;/script&gt;") != std::string::npos);
    const nlohmann::json data = data_of(page);
    CHECK(data["title"] == hostile);
    CHECK(data["figures"][0] == nlohmann::json({hostile, hostile}));
    CHECK(data["tables"][0]["rows"][0][1] == hostile);
}

TEST_CASE("Bytes that are not UTF-8 are replaced, and control characters do no harm") {
    ReportPage page(
        "a\xff\xfe"
        "b\x01\n");
    CHECK(page.html().find('\xff') == std::string::npos);
    CHECK(data_of(page)["title"].get<std::string>().front() == 'a');
}

TEST_CASE("A run's numbers have six digits, and none where there is none") {
    ReportPage page("run");
    page.add_run({"one", {"epoch", "train_loss"}, {{1, 0.123456789}, {2, NAN}, {3, INFINITY}}, {}});
    const nlohmann::json run = data_of(page)["runs"][0];
    CHECK(run["rows"].dump() == "[[1,0.123457],[2,null],[3,null]]");
    CHECK(run["epochs"] == 3);
}

TEST_CASE("Of many epochs some are left out, but never the last") {
    ReportRun run{"long", {"epoch"}, {}, {}};
    for (int i = 1; i <= 100001; ++i) run.rows.push_back({static_cast<double>(i)});
    ReportPage page("run");
    page.add_run(run);
    const nlohmann::json shown = data_of(page)["runs"][0];
    CHECK(shown["epochs"] == 100001);
    CHECK(shown["rows"].size() <= 4000);
    CHECK(shown["rows"].size() > 2000);
    CHECK(shown["rows"].back()[0] == 100001);
}

TEST_CASE("A page without data is refused") {
    CHECK_THROWS_AS(report_data("<html></html>"), Error);
    CHECK_THROWS_AS(report_data("<script type=\"application/json\" id=\"data\">{}"), Error);
}

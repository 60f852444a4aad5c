// SPDX-License-Identifier: MIT
// ReportPage: a page for a browser that shows training runs, times by node, a device's roofline,
// memory and networks, as dlprim_train, dlprim_benchmark --html and dlprim_compare write it.
//
// The page is one file without outside resources; Chart.js, which draws its curves, is in it. It is
// made for light and dark screens, phones and paper. Text that is given may hold anything: the page
// shows it and never runs it. A ReportPage is a plain value for one thread at a time.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/describe.hpp>
#include <dlprim/memory_map.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

/// A training run: the columns of its metrics.csv, and their values for each epoch.
struct ReportRun {
    std::string name;
    std::vector<std::string> columns;       ///< "epoch", "train_loss", "test_accuracy", ...
    std::vector<std::vector<double>> rows;  ///< NaN where there is no value
    /// What else is known of it ("device", "batch"): runs on one page are compared by it.
    std::vector<std::pair<std::string, std::string>> facts;
};

class ReportPage {
  public:
    /// `device` is shown below the title; it may be empty.
    explicit ReportPage(std::string_view title, std::string_view device = {});
    ~ReportPage();
    ReportPage(ReportPage&&) noexcept;
    ReportPage& operator=(ReportPage&&) noexcept;

    /// A figure to see first: ("time a batch", "12.3 ms").
    void add_figure(std::string_view name, std::string_view value);
    /// A table of two columns, such as the versions of what took part.
    void add_table(std::string_view title,
                   const std::vector<std::pair<std::string, std::string>>& rows);
    /// Curves of a run. Of several runs each gets a colour. Of more than some thousands of epochs
    /// some are left out, evenly.
    void add_run(const ReportRun& run);
    /// Time by node and by type, if it was measured, and each node below the device's roofline, of
    /// which the peaks are Traits::gflops and gbytes_per_s.
    void add_nodes(const std::vector<NodeReport>& nodes, const Traits& device);
    void add_memory(const MemoryMap& map);
    /// The operators as a picture with the shapes of what flows between them.
    void add_network(const NetworkDescription& network);

    /// The page, in UTF-8. Bytes of names that are not UTF-8 are replaced.
    std::string html() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// What the page in `html` holds, as JSON: the text of its element of id "data". The page may come
/// from anywhere. Throws Error(format) if it has no such element.
std::string report_data(std::string_view html);

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// parse_device(): fields with their bounds, and what they mean for traits.
#include "runtime/device_file.hpp"

#include "base/classic_numbers.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/devices.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace dlprim {
namespace {

using nlohmann::json;

constexpr std::uint64_t most_bytes = 64 << 10;  ///< which bounds the nesting, too

/// The object of a file, from which each field is taken once.
class Fields {
  public:
    Fields(std::string_view text, const std::string& path) : path_(path) {
        const ClassicNumbers classic;
        all_ = json::parse(text, nullptr, false);
        if (all_.is_discarded()) refuse("it is not JSON");
        if (!all_.is_object()) refuse("it must be an object with the fields of a device");
    }

    double number(const char* name, double least, double most) {
        return in_bounds(name, take(name), least, most);
    }
    std::uint64_t count(const char* name, std::uint64_t least, std::uint64_t most) {
        const json& value = take(name);
        const double found =
            in_bounds(name, value, static_cast<double>(least), static_cast<double>(most));
        if (found != std::floor(found)) refuse(cat(quoted(name, value), " must be a whole number"));
        return static_cast<std::uint64_t>(found);
    }
    bool flag(const char* name) {
        const json& value = take(name);
        if (!value.is_boolean()) refuse(cat(quoted(name, value), " must be true or false"));
        return value.get<bool>();
    }
    std::string text(const char* name) { return text_in(name, take(name)); }
    /// "" if the file lacks the field, which it may.
    std::string text_if_any(const char* name) {
        taken_.emplace_back(name);
        const auto found = all_.find(name);
        return found == all_.end() ? std::string() : text_in(name, *found);
    }
    std::vector<std::string> texts(const char* name) {
        std::vector<std::string> all;
        for (const json& value : list(name)) all.push_back(text_in(name, value));
        return all;
    }
    std::vector<std::size_t> counts(const char* name, double least, double most) {
        std::vector<std::size_t> all;
        for (const json& value : list(name))
            all.push_back(static_cast<std::size_t>(in_bounds(name, value, least, most)));
        return all;
    }

    /// To be called last: a field that nobody took may be one that is misspelt.
    void check_all_taken() const {
        for (const auto& [name, value] : all_.items())
            if (std::find(taken_.begin(), taken_.end(), name) == taken_.end())
                refuse(cat("there is no field '", shown(name), "'", did_you_mean(name, taken_)));
    }
    [[noreturn]] void refuse(const std::string& why) const {
        fail(ErrorKind::format, "device file '", path_, "': ", why);
    }

  private:
    const json& take(const char* name) {
        taken_.emplace_back(name);
        const auto found = all_.find(name);
        if (found == all_.end()) refuse(cat("it lacks the field '", name, "'"));
        return *found;
    }
    const json& list(const char* name) {
        const json& value = take(name);
        if (!value.is_array()) refuse(cat(quoted(name, value), " must be a list"));
        return value;
    }
    std::string text_in(const char* name, const json& value) const {
        if (!value.is_string() || value.get<std::string>().empty())
            refuse(cat(quoted(name, value), " must be a text"));
        return value.get<std::string>();
    }
    double in_bounds(const char* name, const json& value, double least, double most) const {
        const double found = value.is_number() ? value.get<double>() : least - 1;
        if (!(found >= least && found <= most))
            refuse(cat(quoted(name, value), " must be a number from ", least, " to ", most));
        return found;
    }
    static std::string shown(std::string text) {
        if (text.size() > 40) text = text.substr(0, 40) + "...";
        std::replace_if(
            text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
        return text;
    }
    static std::string quoted(const char* name, const json& value) {
        const std::string found = value.is_array()    ? "a list"
                                  : value.is_object() ? "an object"
                                                      : shown(value.dump(-1, ' ', true));
        return cat("field '", name, "' is ", found, ", and");
    }

    std::string path_;
    json all_;
    std::vector<std::string> taken_;
};

void read_memory(Fields& fields, Traits& traits) {
    constexpr std::uint64_t tib_in_mib = 1 << 20;
    traits.local_bytes = fields.count("local_kib", 0, 1024) << 10;
    traits.global_bytes = fields.count("global_mib", 1, tib_in_mib) << 20;
    traits.max_alloc_bytes = fields.count("max_alloc_mib", 1, tib_in_mib) << 20;
    traits.cache_bytes = fields.count("cache_kib", 0, 4 << 20) << 10;
    traits.base_align_bytes = fields.count("base_align_bytes", 4, 4096);
    traits.unified_memory = fields.flag("unified_memory");
    traits.gbytes_per_s = fields.number("gbytes_per_s", 1, 1e5);
    if (traits.max_alloc_bytes > traits.global_bytes)
        fields.refuse("field 'max_alloc_mib' must not exceed 'global_mib'");
    if ((traits.base_align_bytes & (traits.base_align_bytes - 1)) != 0)
        fields.refuse("field 'base_align_bytes' must be a power of two");
    traits.base_align_bytes = std::max<std::uint64_t>(64, traits.base_align_bytes);
}

/// Registers of a lane are shared by its waves, at most max_waves. wanted_waves hide the latency.
int item_registers(Fields& fields) {
    const std::uint64_t of_lane = fields.count("lane_registers", 0, 1 << 16);
    const std::uint64_t of_item = fields.count("most_item_registers", 0, 4096);
    const std::uint64_t most = fields.count("max_waves", 1, 128);
    const std::uint64_t wanted = fields.count("wanted_waves", 1, 128);
    if (wanted > most) fields.refuse("field 'wanted_waves' must not exceed 'max_waves'");
    return static_cast<int>(std::min(of_lane / wanted, of_item));
}

/// NVIDIA's matrix instructions, which the library tries where the device is here.
void read_matrix_unit(Fields& fields, Traits& traits) {
    const std::string unit = fields.text_if_any("matrix_unit");
    if (unit.empty()) return;
    if (unit != "wgmma" && unit != "mma")
        fields.refuse("field 'matrix_unit' must be \"wgmma\" or \"mma\" where it is given");
    traits.wgmma = unit == "wgmma";
    traits.mma = unit == "mma";
    traits.matrix_fp16 = traits.matrix_bf16 = true;
    traits.mma_local_bytes = fields.count("mma_local_kib", 1, 1024) << 10;
}

std::string driver_of(Fields& fields) {
    const std::string compiler = fields.text("compiler"), target = fields.text("target");
    if (compiler != "clang" && compiler != "ocloc" && compiler != "none")
        fields.refuse(
            "field 'compiler' must be \"clang\" or \"ocloc\", or \"none\" where nobody has a "
            "compiler for the device without the device");
    return compiler == "none" ? compiler : cat(compiler, ' ', target);
}

}  // namespace

DescribedDevice parse_device(std::string_view text, const std::string& path) {
    Fields fields(text, path);
    DescribedDevice device;
    DeviceInfo& info = device.info;
    Traits& traits = device.traits;
    fields.count("format", 1, 1);
    info.id = "file:" + path;
    info.name = fields.text("name");
    info.vendor = fields.text("vendor");
    info.platform = "described";
    info.driver = driver_of(fields);
    info.kind = DeviceKind::gpu;
    for (const char* for_readers : {"architecture", "opencl"}) fields.text(for_readers);
    if (fields.texts("sources").empty()) fields.refuse("field 'sources' must name a source");
    read_memory(fields, traits);
    info.memory_mib = static_cast<std::uint32_t>(traits.global_bytes >> 20);
    traits.compute_units = static_cast<int>(fields.count("compute_units", 1, 1 << 14));
    fields.number("clock_mhz", 1, 1e4);
    traits.max_work_group = fields.count("max_work_group", 1, 1 << 16);
    traits.gflops = fields.number("gflops", 1, 1e6);
    fields.count("wave_lanes", 1, 128);
    traits.item_registers = item_registers(fields);
    const std::string extensions = join(fields.texts("extensions"), " ");
    traits.fp64 = extensions.find("cl_khr_fp64") != std::string::npos;
    traits.fp16 = extensions.find("cl_khr_fp16") != std::string::npos;
    traits.subgroup_size = subgroup_size_of(extensions, fields.counts("subgroup_sizes", 1, 128));
    read_matrix_unit(fields, traits);
    if (fields.flag("exact_division")) device.options = " -cl-fp32-correctly-rounded-divide-sqrt";
    fields.check_all_taken();
    return device;
}

DescribedDevice read_device_file(const std::string& path) {
    return parse_device(read_file(path, most_bytes), path);
}

}  // namespace dlprim

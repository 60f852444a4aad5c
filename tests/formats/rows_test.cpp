// SPDX-License-Identifier: MIT
// Rows of numpy's and HDF5's arrays, ZIP archives, and CSV tables: intact and damaged.
#include "formats/rows.hpp"
#include "formats/csv.hpp"
#include "formats/hdf5_file.hpp"
#include "support/catch.hpp"

#include <dlprim/error.hpp>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <random>

using namespace dlprim;
namespace fs = std::filesystem;

namespace {

struct RowsFile {
    fs::path path = fs::temp_directory_path() / ("dlprim-rows-test-" + std::to_string(getpid()));
    ~RowsFile() { fs::remove(path); }
    void bytes(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
};

std::string number(std::uint64_t value, int width) {
    std::string text;
    for (int i = 0; i < width; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
}

std::string npy(const std::string& head, const std::string& data) {
    return "\x93NUMPY" + std::string("\1\0", 2) + number(head.size(), 2) + head + data;
}

std::uint32_t crc(const std::string& data) {
    std::uint32_t sum = ~0u;
    for (const char c : data) {
        sum ^= static_cast<unsigned char>(c);
        for (int i = 0; i < 8; ++i) sum = sum >> 1 ^ (0xedb88320u & -(sum & 1));
    }
    return ~sum;
}

/// An archive of one stored member, as numpy.savez writes it.
std::string zip(const std::string& name, const std::string& data) {
    const std::string about = number(crc(data), 4) + number(data.size(), 4) +
                              number(data.size(), 4) + number(name.size(), 2) + number(0, 2);
    const std::string local = "PK\3\4" + number(20, 2) + number(0, 8) + about + name;
    const std::string directory =
        "PK\1\2" + number(20, 2) + number(20, 2) + number(0, 8) + about + number(0, 14) + name;
    return local + data + directory + "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) +
           number(directory.size(), 4) + number(local.size() + data.size(), 4) + number(0, 2);
}

const std::string good_head = "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2), }  \n";
const std::string good_data =
    number(1, 2) + number(2, 2) + number(3, 2) + number(4, 2) + number(5, 2) + number(6, 2);

void check_rows(const Rows& rows) {
    CHECK(rows.shape() == Shape{3, 2});
    CHECK(rows.dtype() == DType::i16);
    std::int16_t row[4] = {};
    rows.read(1, 2, row);
    CHECK(row[0] == 3);
    CHECK(row[3] == 6);
    CHECK_THROWS_AS(rows.read(2, 2, row), Error);
    CHECK_THROWS_AS(rows.read(-1, 1, row), Error);
}

}  // namespace

TEST_CASE("numpy arrays, alone and in an archive") {
    const RowsFile file;
    file.bytes(npy(good_head, good_data));
    check_rows(*open_npy_rows(file.path, ""));
    file.bytes(zip("x.npy", npy(good_head, good_data)));
    check_rows(*open_npy_rows(file.path, "x"));
    CHECK_THROWS_WITH(open_npy_rows(file.path, "y"), ContainsSubstring("it has x"));
}

TEST_CASE("damaged numpy arrays and archives are refused, or read as something") {
    const RowsFile file;
    for (const char* shape :
         {"(3, 3)", "(-1,)", "(99999999999999, 9)", "(1,1,1,1,1,1,1,1,1)", "3", "()"}) {
        std::string head = good_head;
        head.replace(head.find("(3, 2)"), 6, shape);
        file.bytes(npy(head, good_data));
        CHECK_THROWS_AS(open_npy_rows(file.path, ""), Error);
    }
    const std::string archive = zip("x.npy", npy(good_head, good_data));
    for (std::size_t count = 0; count < archive.size(); ++count) {
        file.bytes(archive.substr(0, count));
        CHECK_THROWS_AS(open_npy_rows(file.path, "x"), Error);
    }
    std::mt19937 random(1);
    for (int i = 0; i < 600; ++i) {
        std::string bad = i % 2 ? archive : npy(good_head, good_data);
        for (int k = 0; k < 1 + i % 3; ++k)
            bad[random() % bad.size()] = static_cast<char>(random());
        file.bytes(bad);
        try {
            const auto rows = open_npy_rows(file.path, i % 2 ? "x" : "");
            if (rows->count() == 0) continue;  // without rows, one may have any size
            std::vector<std::byte> data(rows->row_bytes());
            rows->read(0, 1, data.data());
        } catch (const Error&) {
        }
    }
}

TEST_CASE("rows of HDF5's datasets") {
    const RowsFile file;
    const std::int16_t data[] = {1, 2, 3, 4, 5, 6};
    {
        Hdf5Writer writer(file.path);
        writer.write("group/x", Shape{3, 2}, DType::i16, data);
        writer.write("number", Shape{}, DType::i16, data);
        writer.commit();
    }
    check_rows(*open_hdf5_rows(file.path, "group/x"));
    CHECK_THROWS_WITH(open_hdf5_rows(file.path, "number"), ContainsSubstring("single number"));
    Hdf5Reader reader(file.path);
    std::int16_t rows[4] = {};
    reader.read_rows("group/x", 1, 2, rows);
    CHECK(rows[0] == 3);
    CHECK(rows[3] == 6);
    CHECK_THROWS_AS(reader.read_rows("group/x", 2, 2, rows), Error);
    CHECK_THROWS_AS(reader.read_rows("number", 0, 1, rows), Error);
}

TEST_CASE("CSV tables") {
    const auto read = [](const std::string& text) {
        std::string result;
        read_csv(text, "t", ',', [&](const auto& fields, std::int64_t line) {
            result += std::to_string(line);
            for (const std::string_view field : fields) result += "|" + std::string(field);
            result += "\n";
        });
        return result;
    };
    CHECK(read("") == "");
    CHECK(read("a,b\n1,2") == "1|a|b\n2|1|2\n");
    CHECK(read("\xef\xbb\xbf"
               "a,,\r\n\r\n,b\r\n") == "1|a||\n3||b\n");
    CHECK(read("\"a,\"\"b\"\"\nc\",d\ne") == "1|a,\"b\"\nc|d\n3|e\n");
    CHECK(read("\"\",\"\"\n") == "1||\n");
    CHECK_THROWS_WITH(read("a\n\"b"), ContainsSubstring("t:2: a quote is not closed"));
    CHECK_THROWS_WITH(read("\"a\"b"), ContainsSubstring("t:1: there is text behind"));
}

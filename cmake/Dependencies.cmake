# What the build needs, with one sentence for all that is missing instead of CMake's pages for the first, and one table of
# what is optional. dlprim_require_compiler() enables C++ and C; dlprim_require_packages() finds the rest.
set(DLPRIM_INSTALL_HINT "scripts/install_deps.sh in dlprim's source installs what a build needs on Debian and Ubuntu")

macro(dlprim_require_compiler)
    include(CheckLanguage)
    # HDF5's CMake module needs C.
    foreach(language CXX C)
        check_language(${language})
        if(NOT CMAKE_${language}_COMPILER)
            message(FATAL_ERROR "dlprim cannot be built: there is no compiler for C++20 and C. ${DLPRIM_INSTALL_HINT}.")
        endif()
        enable_language(${language})
    endforeach()
endmacro()

macro(dlprim_require_packages)
    set(dlprim_missing "")
    find_package(Threads REQUIRED)
    find_package(OpenCL QUIET)
    if(NOT OpenCL_FOUND)
        list(APPEND dlprim_missing "OpenCL's headers and loader")
    endif()
    find_package(nlohmann_json QUIET)
    if(NOT nlohmann_json_FOUND)
        list(APPEND dlprim_missing "nlohmann/json")
    endif()
    # HDF5's own CMake package differs between distributions; the module finds both. Only C is needed.
    find_package(HDF5 QUIET COMPONENTS C)
    if(NOT HDF5_FOUND)
        list(APPEND dlprim_missing "HDF5")
    endif()
    if(DLPRIM_BUILD_TOOLS AND NOT DLPRIM_CLI11_DIR)
        find_path(cli11_include CLI/CLI.hpp DOC "Folder that holds CLI/CLI.hpp; install libcli11-dev or give -DDLPRIM_CLI11_DIR")
        if(NOT cli11_include)
            list(APPEND dlprim_missing "CLI11, which -DDLPRIM_BUILD_TOOLS=OFF does without,")
        endif()
    endif()
    dlprim_find_onnx()
    if(dlprim_missing)
        list(JOIN dlprim_missing ", " dlprim_missing)
        message(FATAL_ERROR "dlprim cannot be built: ${dlprim_missing} not found. ${DLPRIM_INSTALL_HINT}.")
    endif()
    find_package(ZLIB QUIET)
    find_package(PNG QUIET)
    find_package(JPEG QUIET)
    find_package(ICU QUIET COMPONENTS i18n uc)
    # Its package for pkg-config alone says which of its parts the library was built with, which the header must know.
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
        pkg_check_modules(HTTPLIB QUIET IMPORTED_TARGET cpp-httplib)
    endif()
    # Headers alone: Debian 12 has no static library of Highway, and no CMake package. -DDLPRIM_HIGHWAY_DIR=OFF leaves it out.
    find_path(DLPRIM_HIGHWAY_DIR hwy/highway.h DOC "Folder that holds hwy/highway.h, of Highway 1.0.3 or later")
    dlprim_show_optional()
endmacro()

#   dlprim_report_parts(TITLE ROW...): which parts this build has. A row is CONDITION|WHAT|PACKAGE.
function(dlprim_report_parts title)
    message(STATUS "${title}")
    foreach(row IN LISTS ARGN)
        string(REPLACE "|" ";" row "${row}")
        list(GET row 0 condition)
        list(GET row 1 what)
        list(GET row 2 package)
        separate_arguments(condition)
        string(LENGTH "${what}" length)
        math(EXPR length "32 - ${length}")
        string(REPEAT " " ${length} space)
        if(${condition})
            message(STATUS "  ${what}${space}yes")
        else()
            message(STATUS "  ${what}${space}no: install ${package}, and configure again")
        endif()
    endforeach()
endfunction()

# The table of what is optional. What a build leaves out is an error that names the package where a program asks for it;
# CMAKE_DISABLE_FIND_PACKAGE_PNG=ON and its like leave out what is installed.
function(dlprim_show_optional)
    dlprim_report_parts("Optional parts of this build:" "dlprim_has_onnx|ONNX models|libprotobuf-dev, protobuf-compiler and libonnx-dev"
        "PNG_FOUND|PNG pictures|libpng-dev" "JPEG_FOUND|JPEG pictures|libjpeg-dev"
        "ICU_FOUND|tokenizers of language models|libicu-dev" "HTTPLIB_FOUND|the command dlprim_serve|libcpp-httplib-dev"
        "ZLIB_FOUND|compressed IDX and .npz files|zlib1g-dev"
        "DLPRIM_HIGHWAY_DIR|vector code for the CPU|libhwy-dev")
endfunction()

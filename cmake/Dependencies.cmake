# What the build needs, with one sentence for all that is missing instead of CMake's pages for the first.
# dlprim_require_compiler() enables C++ and C; dlprim_require_packages() finds the rest.
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
    dlprim_find_onnx()  # optional: ONNX models
    if(dlprim_missing)
        list(JOIN dlprim_missing ", " dlprim_missing)
        message(FATAL_ERROR "dlprim cannot be built: ${dlprim_missing} not found. ${DLPRIM_INSTALL_HINT}.")
    endif()
    find_package(ZLIB)  # optional: compressed IDX and .npz files
    # Optional: pictures. Without them PPM and PGM are read.
    foreach(dlprim_library PNG JPEG)
        find_package(${dlprim_library} QUIET)
        if(NOT ${dlprim_library}_FOUND)
            string(TOLOWER ${dlprim_library} dlprim_name)
            message(STATUS "lib${dlprim_name} not found: ${dlprim_library} pictures are not read (install lib${dlprim_name}-dev)")
        endif()
    endforeach()
endmacro()

# DLPRIM_PRECOMPILED_HEADERS: headers that most files of a part of the build include are parsed once for that part, which saves
# a third of the time of a whole build. What is compiled stays the same. A file that forgets an #include compiles all the
# same there, so builds without the option, scripts/tidy.sh among them, find that.

# What nearly every file includes, directly or through the project's headers.
set(DLPRIM_COMMON_HEADERS <algorithm> <array> <charconv> <chrono> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory>
    <mutex> <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <vector>)

# ccache keeps what is compiled with precompiled headers only if it is told the first. Told the second, it takes them from a
# build of another copy of the sources, too: GCC, unlike Clang, has no times of files in them. Both want headers by their names
# in the folders that are searched, <graph/operator.hpp>: CMake makes a quoted one a path of this copy. By the third, comments
# count: GCC reads a header again that differs from the precompiled one, and finds everything in it twice.
if(DLPRIM_PRECOMPILED_HEADERS AND "${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "ccache$")
    set(for_ccache CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_COMMENTS=1)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        list(APPEND for_ccache CCACHE_COMPILERTYPE=gcc)
    endif()
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${for_ccache} ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

#   dlprim_precompile(TARGET header...): the headers for TARGET.
function(dlprim_precompile target)
    if(DLPRIM_PRECOMPILED_HEADERS)
        target_precompile_headers(${target} PRIVATE ${ARGN})
        dlprim_precompiled_for_ccache(${target})
    endif()
endfunction()

#   dlprim_precompiled_from(OTHER TARGET...): the headers of OTHER for each TARGET, whose options have to be the same.
function(dlprim_precompiled_from other)
    if(DLPRIM_PRECOMPILED_HEADERS)
        foreach(target IN LISTS ARGN)
            target_precompile_headers(${target} REUSE_FROM ${other})
            dlprim_precompiled_for_ccache(${target})
        endforeach()
    endif()
endfunction()

# ccache knows by this that the text which it hashes stands for precompiled headers, too.
function(dlprim_precompiled_for_ccache target)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
endfunction()

# The shared library exports what the public headers declare, under the version node DLPRIM_<SOVERSION>, and nothing else:
# cmake/exported_symbols.py writes the linker's version script. Adding a function to a header is all that exporting it takes.
# docs/abi.md says what that promises.
#
# Objects are not compiled with hidden visibility. The static library has the same ones, and the linker binds calls
# between functions that it does not export directly all the same.
function(dlprim_export_only_public target)
    find_package(Python3 QUIET COMPONENTS Interpreter)
    if(NOT Python3_Interpreter_FOUND)
        message(STATUS "No Python: the shared library exports its inner functions, too")
        return()
    endif()
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/dlprim/*.hpp)
    set(script ${CMAKE_SOURCE_DIR}/cmake/exported_symbols.py)
    set(map ${CMAKE_CURRENT_BINARY_DIR}/exported_symbols.map)
    add_custom_command(OUTPUT ${map} DEPENDS ${script} ${headers} VERBATIM
        COMMAND ${Python3_EXECUTABLE} ${script} DLPRIM_${DLPRIM_SOVERSION} ${map} ${headers}
        COMMENT "Listing the functions of public headers")
    add_custom_target(${target}_exports DEPENDS ${map})
    add_dependencies(${target} ${target}_exports)
    target_link_options(${target} PRIVATE "LINKER:--version-script=${map}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()

# DLPRIM_INSTALL_PROGRAMS="NET;...": `cmake --install` compiles the programs of these networks' inference and training steps for
# the best OpenCL device and puts them where the installed library looks for them (docs/engines/compiling.md, "Shipped programs").
# Their own caches are in the build folder, so that they are complete and a second installation compiles nothing.
if(NOT DLPRIM_INSTALL_PROGRAMS)
    return()
endif()
if(NOT DLPRIM_BUILD_TOOLS)
    message(FATAL_ERROR "DLPRIM_INSTALL_PROGRAMS needs DLPRIM_BUILD_TOOLS=ON: dlprim_tune compiles them")
endif()
set(to "${CMAKE_INSTALL_DATADIR}/dlprim-${DLPRIM_SOVERSION}/programs")
if(NOT IS_ABSOLUTE "${to}")
    string(PREPEND to "\${CMAKE_INSTALL_PREFIX}/")
endif()
set(nets "")
foreach(net IN LISTS DLPRIM_INSTALL_PROGRAMS)
    cmake_path(ABSOLUTE_PATH net BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    string(APPEND nets " \"${net}\"")
endforeach()
install(CODE "
foreach(mode \"\" --train)
    execute_process(RESULT_VARIABLE code COMMAND \${CMAKE_COMMAND} -E env
        DLPRIM_CACHE_DIR=${CMAKE_BINARY_DIR}/programs/dlprim POCL_CACHE_DIR=${CMAKE_BINARY_DIR}/programs/pocl
        $<TARGET_FILE:dlprim_tune> -d opencl \${mode} --prewarm${nets}
        --write-programs \"\$ENV{DESTDIR}${to}\")
    if(NOT code EQUAL 0)
        message(WARNING \"the programs of some networks were not compiled; the library compiles them at their first use\")
    endif()
endforeach()" COMPONENT library)

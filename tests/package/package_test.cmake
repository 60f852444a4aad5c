# Run with -P: see CMakeLists.txt. Fails with the output of the step that failed.
function(step what)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${what} failed:\n${output}")
    endif()
    set(output "${output}" PARENT_SCOPE)
endfunction()

set(work ${BUILD}/package_test)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})
step("cmake --install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# The tree is moved after installing: nothing in it may point to where it was.
file(RENAME ${prefix} ${work}/moved)
set(prefix ${work}/moved)
file(COPY ${SOURCE}/program/ DESTINATION ${work}/program)
set(flags "${SANITIZE}")

step("find_package(dlprim)" ${CMAKE_COMMAND} -S ${work}/program -B ${work}/program/build
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${flags})
step("building with find_package" ${CMAKE_COMMAND} --build ${work}/program/build)
foreach(program with_shared with_static)
    step("running ${program}" ${work}/program/build/${program})
    if(NOT output MATCHES "^dlprim [0-9.]+: 19 22 43 50")
        message(FATAL_ERROR "${program} printed:\n${output}")
    endif()
endforeach()

step("running with_opencl" ${work}/program/build/with_opencl)
if(NOT output MATCHES "^(no OpenCL platform|0 waits, 0 buffers: 0 0 0 0 2 4 6 8)")
    message(FATAL_ERROR "with_opencl printed:\n${output}")
endif()

# What the component of the shared library installs has its number in its path, so that libraries of two numbers can be
# installed beside each other.
step("cmake --install --component library" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/library --component library)
file(GLOB_RECURSE files LIST_DIRECTORIES false RELATIVE ${work}/library ${work}/library/*)
set(names "libdlprim_core\\.so\\.(${SOVERSION}|${VERSION})$")
set(folders "/(dlprim-|libdlprim)${SOVERSION}/")
foreach(file IN LISTS files)
    if(NOT "/${file}" MATCHES "${names}|${folders}")
        message(FATAL_ERROR "the library installs ${file}, which would overwrite that of a library of another number")
    endif()
endforeach()
list(LENGTH files count)
if(count LESS 3)
    message(FATAL_ERROR "the library installs only: ${files}")
endif()

# The library has the path of this one from its own. Started by hand, it ends with status 2, since its input is no socket.
file(STRINGS ${prefix}/${LIBDIR}/libdlprim_core.so folders REGEX "/dlprim-${SOVERSION}$")
set(executable "")
foreach(folder IN LISTS folders)
    if(EXISTS ${prefix}/${LIBDIR}/${folder}/dlprim_compile)
        set(executable ${prefix}/${LIBDIR}/${folder}/dlprim_compile)
    endif()
endforeach()
if(NOT executable)
    message(FATAL_ERROR "the library looks for dlprim_compile in '${folders}', where it is not")
endif()
execute_process(COMMAND ${executable} INPUT_FILE /dev/null RESULT_VARIABLE result)
if(NOT result EQUAL 2)
    message(FATAL_ERROR "dlprim_compile is not installed, or does not run: ${result}")
endif()

# Each public header serves alone, and gives the library's namespace its short name.
file(GLOB headers RELATIVE ${prefix}/include ${prefix}/include/dlprim/*.hpp)
list(LENGTH headers count)
if(count LESS 10)
    message(FATAL_ERROR "only these headers are installed: ${headers}")
endif()
foreach(header IN LISTS headers)
    file(WRITE ${work}/header.cpp "#include <${header}>\nusing namespace dp;\nnamespace same = dp;\n")
    step("compiling <${header}> alone" ${COMPILER} -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I${prefix}/include
        ${work}/header.cpp)
endforeach()

# Builds the program as docs/first_program.md says and runs it, for what pkg-config finds in a folder. No option names where the library
# lies, and no variable does.
function(build_by_pkg_config where)
    set(ENV{PKG_CONFIG_PATH} ${where})
    unset(ENV{LD_LIBRARY_PATH})
    step("pkg-config ${ARGN}" ${pkg_config} --cflags --libs ${ARGN} dlprim)
    separate_arguments(arguments UNIX_COMMAND "${output}")
    if(ARGN)
        list(REMOVE_ITEM arguments -ldlprim_core)
        list(INSERT arguments 0 ${prefix}/${LIBDIR}/libdlprim_core.a)
    endif()
    separate_arguments(more UNIX_COMMAND "${flags}")
    step("building with pkg-config ${ARGN}" ${COMPILER} ${more} -std=c++20 ${work}/program/main.cpp ${arguments} -o
        ${work}/by_pkg_config)
    step("running what pkg-config ${ARGN} built" ${work}/by_pkg_config)
endfunction()

find_program(pkg_config pkg-config)
if(pkg_config)
    build_by_pkg_config(${prefix}/${LIBDIR}/pkgconfig)
    build_by_pkg_config(${prefix}/${LIBDIR}/pkgconfig --static)

    # The same tree with Debian's folder of libraries, whose .pc file only a configuration makes.
    set(multiarch lib/x86_64-linux-gnu)
    step("configuring for ${multiarch}" ${CMAKE_COMMAND} -S ${ROOT} -B ${work}/configured -DCMAKE_INSTALL_LIBDIR=${multiarch}
        -DCMAKE_CXX_COMPILER=${COMPILER} -DDLPRIM_BUILD_TESTS=OFF -DDLPRIM_BUILD_TOOLS=OFF -DDLPRIM_BUILD_EXAMPLES=OFF)
    set(debian ${work}/debian)
    file(COPY ${prefix}/include DESTINATION ${debian})
    file(GLOB libraries ${prefix}/${LIBDIR}/libdlprim_core.so*)
    file(COPY ${libraries} DESTINATION ${debian}/${multiarch})
    file(COPY ${work}/configured/dlprim.pc DESTINATION ${debian}/${multiarch}/pkgconfig)
    file(RENAME ${prefix} ${work}/out_of_reach)
    build_by_pkg_config(${debian}/${multiarch}/pkgconfig)
endif()

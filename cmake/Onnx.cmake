# ONNX models (src/formats/onnx): protobuf reads them, by classes that protoc makes of ONNX's schema. The schema is that
# of Debian's libonnx-dev, or of the onnx package of the Python that CMake finds. Without protobuf or the schema the
# library is built without: reading a model is then an error that says so.
set(DLPRIM_WITH_ONNX AUTO CACHE STRING "Read ONNX models: ON, OFF, or AUTO: where protobuf and ONNX's schema are there")
set_property(CACHE DLPRIM_WITH_ONNX PROPERTY STRINGS AUTO ON OFF)
set(DLPRIM_ONNX_SCHEMA "" CACHE FILEPATH "onnx.proto or onnx-ml.proto, where it is not found by itself")

# Sets dlprim_onnx_schema to the schema's path, or to nothing.
function(dlprim_find_onnx_schema)
    set(dlprim_onnx_schema "${DLPRIM_ONNX_SCHEMA}")
    if(NOT dlprim_onnx_schema)
        find_file(schema NAMES onnx/onnx-ml.proto onnx/onnx.proto NO_CACHE
            PATHS ${CMAKE_INSTALL_PREFIX}/include /usr/local/include /usr/include)
        if(NOT schema)
            find_package(Python3 QUIET COMPONENTS Interpreter)
            foreach(python ${Python_EXECUTABLE} ${Python3_EXECUTABLE})
                execute_process(COMMAND ${python} -c
                    "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('onnx').origin).parent / 'onnx-ml.proto')"
                    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
                if(found AND EXISTS "${found}")
                    set(schema "${found}")
                    break()
                endif()
            endforeach()
        endif()
        if(schema)
            set(dlprim_onnx_schema "${schema}")
        endif()
    endif()
    set(dlprim_onnx_schema "${dlprim_onnx_schema}" PARENT_SCOPE)
endfunction()

# Sets dlprim_has_onnx, and adds to dlprim_missing what DLPRIM_WITH_ONNX=ON lacks.
macro(dlprim_find_onnx)
    set(dlprim_has_onnx FALSE)
    if(DLPRIM_WITH_ONNX)
        set(Protobuf_USE_STATIC_LIBS OFF)
        find_package(Protobuf QUIET)
        dlprim_find_onnx_schema()
        if(Protobuf_FOUND AND Protobuf_PROTOC_EXECUTABLE AND TARGET protobuf::libprotobuf-lite AND dlprim_onnx_schema)
            set(dlprim_has_onnx TRUE)
        elseif(NOT DLPRIM_WITH_ONNX STREQUAL "AUTO")
            list(APPEND dlprim_missing "protobuf and ONNX's schema, which DLPRIM_WITH_ONNX asks for,")
        endif()
    endif()
endmacro()

# The generated classes and what reads by them, as the object library dlprim_onnx_objects; or what says that there is
# none. The schema's package becomes one of ours and protobuf's light runtime serves it, so that nothing of it meets
# another ONNX in the same program.
function(dlprim_add_onnx_reader folder)
    if(NOT dlprim_has_onnx)
        add_library(dlprim_onnx_objects OBJECT ${folder}/read_absent.cpp)
    else()
        set(generated ${CMAKE_CURRENT_BINARY_DIR}/onnx_schema)
        file(MAKE_DIRECTORY ${generated})
        file(READ ${dlprim_onnx_schema} schema)
        string(REGEX REPLACE "\npackage [^;]*;" "\npackage dlprim.onnx_proto;" schema "${schema}")
        string(REGEX REPLACE "\noption optimize_for[^;]*;" "" schema "${schema}")
        file(CONFIGURE OUTPUT ${generated}/onnx.proto CONTENT "${schema}\noption optimize_for = LITE_RUNTIME;\n" @ONLY)
        # It depends on the schema's own file, too: scripts/sbom.py asks Ninja what went into the library.
        add_custom_command(OUTPUT ${generated}/onnx.pb.cc ${generated}/onnx.pb.h
            COMMAND ${Protobuf_PROTOC_EXECUTABLE} --proto_path=${generated} --cpp_out=${generated} onnx.proto
            DEPENDS ${generated}/onnx.proto ${dlprim_onnx_schema} COMMENT "Making classes of ONNX's schema" VERBATIM)
        add_library(dlprim_onnx_objects OBJECT ${folder}/read_model.cpp ${folder}/read_tensor.cpp
            ${folder}/read_value.cpp ${generated}/onnx.pb.cc ${generated}/onnx.pb.h)
        set_source_files_properties(${generated}/onnx.pb.cc PROPERTIES COMPILE_OPTIONS "-w;-fvisibility=hidden")
        target_include_directories(dlprim_onnx_objects SYSTEM PRIVATE ${generated})
        target_link_libraries(dlprim_onnx_objects PRIVATE protobuf::libprotobuf-lite)
        target_compile_options(dlprim_onnx_objects PRIVATE -fvisibility-inlines-hidden)
    endif()
    target_include_directories(dlprim_onnx_objects PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(dlprim_onnx_objects PRIVATE dlprim_options)
    if(DLPRIM_FUZZ)  # as in src/CMakeLists.txt
        target_compile_options(dlprim_onnx_objects PRIVATE -fsanitize=fuzzer-no-link)
    endif()
endfunction()

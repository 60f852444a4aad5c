# dlprim_embed_kernels(OUTPUT): a rule that turns kernels/**.cl and .clh into one C++ file holding them as
# a table of raw strings, rebuilt when one of them changes.
function(dlprim_embed_kernels output)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*.cl ${CMAKE_SOURCE_DIR}/kernels/*.clh)
    list(SORT files)
    add_custom_command(OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${CMAKE_SOURCE_DIR}/kernels "-DFILES=${files}"
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_kernels_script.cmake
        DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed_kernels_script.cmake
        COMMENT "Embedding OpenCL kernels" VERBATIM)
endfunction()

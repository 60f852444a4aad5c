# dlprim_embed_cases(OUTPUT): a rule that turns those cases of tests/cases/*.json that are marked "self_test" into one C++
# file holding them as a raw string, rebuilt when one of the files changes.
function(dlprim_embed_cases output)
    file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cases/*.json)
    list(SORT files)
    add_custom_command(OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DFILES=${files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed_cases_script.cmake
        DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed_cases_script.cmake
        COMMENT "Embedding the cases of the self-test" VERBATIM)
endfunction()

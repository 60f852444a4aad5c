# Run with -P: writes OUTPUT, C++ with the text of FILES: those that end in .css as page_style, the others as page_script.
set(style "")
set(script "")
foreach(file IN LISTS FILES)
    file(READ ${file} body)
    # The text stands between tags of the page and in raw strings.
    if(body MATCHES "</[sS][cCtT]" OR body MATCHES "\\)dlprim_web\"")
        message(FATAL_ERROR "${file} holds a closing tag, which would end the page's script or style")
    endif()
    if(file MATCHES "\\.css$")
        string(APPEND style "${body}")
    else()
        string(APPEND script "${body}\n")
    endif()
endforeach()
file(WRITE ${OUTPUT} "// Generated from web/. Do not edit.\n#include \"api/report/page.hpp\"\n\nnamespace dlprim {\n"
    "const char* const page_style = R\"dlprim_web(${style})dlprim_web\";\n"
    "const char* const page_script = R\"dlprim_web(${script})dlprim_web\";\n}  // namespace dlprim\n")

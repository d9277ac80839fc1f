# Writes OUTPUT from TEMPLATE with the commit of SOURCE_DIR ("+changes" where files differ from it).
set(COMMIT "")
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT} rev-parse --short=12 HEAD WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    set(COMMIT "")
  else()
    execute_process(COMMAND ${GIT} diff-index --quiet HEAD -- WORKING_DIRECTORY ${SOURCE_DIR}
      RESULT_VARIABLE changed ERROR_QUIET)
    if(changed)
      string(APPEND COMMIT "+changes")
    endif()
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)

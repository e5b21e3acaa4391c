# Real reports fit their schema; skipped only where python3-jsonschema is not there.
find_program(PYTHON3 python3)
if(PYTHON3 AND TARGET sonde)
	add_test(NAME report_schema COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/present/check_schema.py
		$<TARGET_FILE:sonde> ${CMAKE_SOURCE_DIR})
	set_tests_properties(report_schema PROPERTIES SKIP_RETURN_CODE 77)
endif()

# No text of the program lacks its translation, and formats agree.
find_program(XGETTEXT xgettext)
if(XGETTEXT AND PYTHON3)
	add_test(NAME translations COMMAND ${CMAKE_SOURCE_DIR}/tools/update-po --check)
endif()

# tests/cli/NAME/cmd is a case of the program as a whole (tests/cli/run), and
# the scripts of tools/ show that they can fail.
if(TARGET sonde)
	add_dependencies(tests sonde)
	file(GLOB cli_cases CONFIGURE_DEPENDS tests/cli/*/cmd)
	foreach(case ${cli_cases})
		get_filename_component(case ${case} DIRECTORY)
		get_filename_component(name ${case} NAME)
		add_test(NAME cli_${name}
			COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/run $<TARGET_FILE:sonde> ${name})
		set_tests_properties(cli_${name} PROPERTIES SKIP_RETURN_CODE 77)
	endforeach()
endif()

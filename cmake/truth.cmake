# The program as a whole against values that somebody else computed.
find_program(PYTHON3 python3)
if(PYTHON3 AND TARGET sonde)
	file(GLOB truth_checks CONFIGURE_DEPENDS tests/truth/check_*.py)
	foreach(check ${truth_checks})
		get_filename_component(name ${check} NAME_WE)
		add_test(NAME truth_${name} COMMAND ${PYTHON3} ${check} $<TARGET_FILE:sonde>)
	endforeach()
endif()

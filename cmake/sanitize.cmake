# Included last: what every test of a sanitized build runs with. A leak is found
# when the program ends, with a status of its own that Criterion takes for a test
# that passed; a program that aborts it does not.
if(NOT SONDE_TESTS OR NOT SONDE_SANITIZE MATCHES "address")
	return()
endif()
if(CRITERION_LIB)
	add_executable(sanitize_leak EXCLUDE_FROM_ALL tests/sanitize/leak.c)
	target_link_libraries(sanitize_leak PRIVATE ${CRITERION_LIB})
	add_dependencies(tests sanitize_leak)
	add_test(NAME sanitize_leak_fails COMMAND sanitize_leak)
	set_tests_properties(sanitize_leak_fails PROPERTIES WILL_FAIL ON)
endif()
get_property(sanitized DIRECTORY PROPERTY TESTS)
set_property(TEST ${sanitized} APPEND PROPERTY ENVIRONMENT
	"ASAN_OPTIONS=detect_leaks=1:abort_on_error=1" "UBSAN_OPTIONS=print_stacktrace=1")

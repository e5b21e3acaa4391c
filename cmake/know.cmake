# data/*.csv become constant tables of the know layer, through tools/csv2c.
file(GLOB know_data CONFIGURE_DEPENDS data/*.csv)
add_executable(csv2c tools/csv2c.c)
add_custom_command(OUTPUT know_tables.c
	COMMAND csv2c ${CMAKE_CURRENT_BINARY_DIR}/know_tables.c ${know_data}
	DEPENDS csv2c ${know_data} VERBATIM)
target_sources(know PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/know_tables.c)

/*
 * sql_table.h - every kind of event as a virtual table of SQLite. Internal to
 * store/.
 */
#pragma once

#include "store/internal.h"

struct sql_table;

/* One for each kind; they must outlive the connection they are added to. */
struct sql_table *sql_tables_new(void);
void sql_tables_free(struct sql_table *tables);

void sql_tables_add(struct store *store, struct sql_table *tables);

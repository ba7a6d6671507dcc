// The system's SQLite, and non-variadic doors to the calls that Swift cannot make.
#ifndef LARDER_CSQLITE_SHIM_H
#define LARDER_CSQLITE_SHIM_H

#include <sqlite3.h>

// `sqlite3_db_config` is variadic, which Swift does not import.
static inline int larder_sqlite3_db_config_flag(sqlite3 *db, int operation, int value, int *result) {
  return sqlite3_db_config(db, operation, value, result);
}

// `SQLITE_TRANSIENT` is a cast of -1 to a function pointer, which Swift does not import.
static inline int larder_sqlite3_bind_text(
    sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 length) {
  return sqlite3_bind_text64(statement, index, text, length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

#endif

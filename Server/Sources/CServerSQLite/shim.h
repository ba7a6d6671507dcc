// The system's SQLite, and doors to the calls that Swift cannot make.
#ifndef LARDER_SERVER_SQLITE_SHIM_H
#define LARDER_SERVER_SQLITE_SHIM_H

#include <sqlite3.h>

// `SQLITE_TRANSIENT` is a cast of -1 to a function pointer, which Swift does not import. A null text would bind NULL, not "".
static inline int larder_server_bind_text(sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 length) {
  return sqlite3_bind_text64(statement, index, text ? text : "", length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

#endif

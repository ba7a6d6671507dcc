// The system's SQLite, which the peer in plain C calls, with the one door that Swift lacks.
#ifndef LARDER_BENCHMARK_SQLITE_SHIM_H
#define LARDER_BENCHMARK_SQLITE_SHIM_H

#include <sqlite3.h>

// `SQLITE_TRANSIENT` is a cast of -1 to a function pointer, which Swift does not import.
static inline int benchmark_bind_text(sqlite3_stmt *statement, int index, const void *text, sqlite3_uint64 length) {
  return sqlite3_bind_text64(statement, index, text, length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

#endif

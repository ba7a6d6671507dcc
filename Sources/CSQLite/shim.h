// The system's SQLite, and non-variadic doors to the calls that Swift cannot make.
#ifndef LARDER_CSQLITE_SHIM_H
#define LARDER_CSQLITE_SHIM_H

#include <sqlite3.h>
#include <string.h>

// `sqlite3_db_config` is variadic, which Swift does not import.
static inline int larder_sqlite3_db_config_flag(sqlite3 *db, int operation, int value, int *result) {
  return sqlite3_db_config(db, operation, value, result);
}

// `SQLITE_TRANSIENT` is a cast of -1 to a function pointer, which Swift does not import. A null text would bind NULL, not "".
static inline int larder_sqlite3_bind_text(
    sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 length) {
  return sqlite3_bind_text64(statement, index, text ? text : "", length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

// As for a text: null bytes would bind NULL, not a blob without bytes.
static inline int larder_sqlite3_bind_blob(
    sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 length) {
  return sqlite3_bind_blob64(statement, index, bytes ? bytes : "", length, SQLITE_TRANSIENT);
}

// Reads the database file below the pager, through SQLite's own descriptor: closing one of ours would drop the POSIX locks of
// every other connection of this process. Reading past the end gives zeros and SQLITE_IOERR_SHORT_READ.
static inline int larder_sqlite3_read_file(
    sqlite3 *db, void *bytes, int count, sqlite3_int64 offset, sqlite3_int64 *size) {
  sqlite3_file *file = 0;
  int result = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (result != SQLITE_OK) return result;
  if (!file || !file->pMethods) return SQLITE_CANTOPEN;
  result = file->pMethods->xFileSize(file, size);
  return result == SQLITE_OK ? file->pMethods->xRead(file, bytes, count, offset) : result;
}

// Makes everything in the database (SQLITE_FCNTL_FILE_POINTER) or in its write-ahead log (SQLITE_FCNTL_JOURNAL_POINTER) durable; nothing to
// do where there is no log yet.
static inline int larder_sqlite3_sync(sqlite3 *db, int pointer, int flags) {
  sqlite3_file *file = 0;
  int result = sqlite3_file_control(db, "main", pointer, &file);
  if (result != SQLITE_OK || !file || !file->pMethods) return result;
  return file->pMethods->xSync(file, flags);
}

// The functions of a write-ahead log that is marked as empty where SQLite would truncate it.
struct larder_marked_log {
  sqlite3_io_methods methods;
  const sqlite3_io_methods *original;
  const void *mark;
};

// Writes the mark of 24 bytes over the header, and behind it the salts of the first frame: frames of other salts are newer than the mark.
static inline int larder_mark_log(sqlite3_file *file, sqlite3_int64 size) {
  const struct larder_marked_log *log = (const struct larder_marked_log *)file->pMethods;
  if (size != 0) return log->original->xTruncate(file, size);
  unsigned char start[56];
  int result = log->original->xRead(file, start, 56, 0);
  if (result == SQLITE_IOERR_SHORT_READ) return log->original->xTruncate(file, 0);
  if (result != SQLITE_OK) return result;
  memcpy(start, log->mark, 24);
  memcpy(start + 24, start + 40, 8);
  return log->original->xWrite(file, start, 32, 0);
}

// Folds the write-ahead log as SQLITE_CHECKPOINT_TRUNCATE does, but writes a mark over its header. SQLite has begun the log anew by then, and
// lets nobody read it.
static inline int larder_sqlite3_checkpoint_marking(sqlite3 *db, const void *mark) {
  sqlite3_file *file = 0;
  int result = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
  if (result != SQLITE_OK) return result;
  if (!file || !file->pMethods) return sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, 0, 0);
  struct larder_marked_log log = {*file->pMethods, file->pMethods, mark};
  log.methods.xTruncate = larder_mark_log;
  file->pMethods = &log.methods;
  result = sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, 0, 0);
  file->pMethods = log.original;
  return result;
}

// The error number of the last operation on the write-ahead log that failed, or 0. COMMIT leaves that of `sqlite3_system_errno` as it was.
static inline int larder_sqlite3_log_errno(sqlite3 *db) {
  int number = 0;
  sqlite3_file *file = 0;
  if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK && file && file->pMethods) {
    file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number);
  }
  return number;
}

// The error number of the last operation on the database or its log that failed, or 0. SQLite reports a read that ended in EIO as damage.
static inline int larder_sqlite3_last_errno(sqlite3 *db) {
  int number = 0;
  if (db) sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
  return number == 0 && db ? larder_sqlite3_log_errno(db) : number;
}

// An index of the write-ahead log that cannot be reached: SQLite then keeps one in memory, as it does beside a directory that it must not write.
static inline int larder_no_index_map(sqlite3_file *file, int page, int size, int extends, void volatile **memory) {
  (void)file, (void)page, (void)size, (void)extends;
  *memory = 0;
  return SQLITE_READONLY_CANTINIT;
}
static inline int larder_no_index_lock(sqlite3_file *file, int offset, int count, int flags) {
  (void)file, (void)offset, (void)count, (void)flags;
  return SQLITE_OK;
}
static inline void larder_no_index_barrier(sqlite3_file *file) { (void)file; }
static inline int larder_no_index_unmap(sqlite3_file *file, int removes) {
  (void)file, (void)removes;
  return SQLITE_OK;
}

// Keeps a connection that only reads from making the index of the log: called before anything is read, with memory that outlives the connection.
static inline int larder_sqlite3_hide_log_index(sqlite3 *db, sqlite3_io_methods *methods) {
  sqlite3_file *file = 0;
  int result = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (result != SQLITE_OK) return result;
  if (!file || !file->pMethods) return SQLITE_CANTOPEN;
  *methods = *file->pMethods;
  methods->xShmMap = larder_no_index_map;
  methods->xShmLock = larder_no_index_lock;
  methods->xShmBarrier = larder_no_index_barrier;
  methods->xShmUnmap = larder_no_index_unmap;
  file->pMethods = methods;
  return SQLITE_OK;
}

#endif

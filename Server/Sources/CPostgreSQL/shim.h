// The system's libpq, and doors to what Swift cannot name.
#ifndef LARDER_SERVER_POSTGRESQL_SHIM_H
#define LARDER_SERVER_POSTGRESQL_SHIM_H

#include <libpq-fe.h>

// The fields of an error are characters, which Swift does not import as numbers.
static inline const char *larder_server_sqlstate(const PGresult *result) { return PQresultErrorField(result, PG_DIAG_SQLSTATE); }
static inline const char *larder_server_primary(const PGresult *result) { return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY); }

// libpq writes notices to stderr, and they may hold values.
static inline void larder_server_drop_notice(void *context, const PGresult *notice) {
  (void)context;
  (void)notice;
}
static inline void larder_server_drop_notices(PGconn *connection) {
  PQsetNoticeReceiver(connection, larder_server_drop_notice, 0);
}

#endif

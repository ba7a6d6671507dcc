// The system's zlib, and doors to the calls that are macros, which Swift does not import.
#ifndef LARDER_SERVER_ZLIB_SHIM_H
#define LARDER_SERVER_ZLIB_SHIM_H

#include <zlib.h>

// 16 beside the 15 bits of the window means gzip, and nothing else.
static inline int larder_server_begin_gzip(z_stream *stream, int level) {
  return deflateInit2(stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}

static inline int larder_server_begin_gunzip(z_stream *stream) { return inflateInit2(stream, 15 + 16); }

#endif

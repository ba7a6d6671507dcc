// CRC32C by the processor's own instruction. See Docs/Design/0013-checksums-by-the-processor.md.
#ifndef LARDER_CHECKSUM_H
#define LARDER_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether this processor has the instruction; asked for once, since the answer may cost a system call.
bool larder_crc32c_is_available(void);

// Returns the state after some bytes. The state is the complement of the checksum, as in `CRC32C`.
// Only where `larder_crc32c_is_available` says so.
uint32_t larder_crc32c_update(uint32_t state, const void *bytes, size_t count);

#endif

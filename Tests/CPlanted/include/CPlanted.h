// Mistakes with memory that AddressSanitizer must find.
#pragma once

/// Reads a byte behind the end of a block.
int planted_overflow(long count);

/// Reads a block that was freed.
int planted_use_after_free(long count);

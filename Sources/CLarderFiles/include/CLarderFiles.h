// The status of files, as far as Swift's modules of the C library do not have it.
#ifndef LARDER_FILES_H
#define LARDER_FILES_H

#include <sys/stat.h>

// Does what `lstat` does, and leaves the times zero where the system lets them be left out.
//
// Linux (from 6.13 on) gives a file whose times were asked for a new one at its next write, and a sync then writes the file's metadata, too.
int larder_lstat_without_times(const char *path, struct stat *status);

#endif

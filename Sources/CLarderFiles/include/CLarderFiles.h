// The status of files, as far as Swift's modules of the C library do not have it.
#ifndef LARDER_FILES_H
#define LARDER_FILES_H

#include <sys/stat.h>

// Gives what `lstat` gives of kind, mode, links, owner, identity and size. The rest is zero where the system lets it be left out.
//
// Linux (from 6.13 on) gives a file whose times were asked for a new one at its next write, and a sync then writes the file's metadata, too.
int larder_lstat_without_times(const char *path, struct stat *status);

#endif

// The status, locks and attributes of files, as far as Swift's modules of the C library do not have them.
#ifndef LARDER_FILES_H
#define LARDER_FILES_H

#include <sys/stat.h>

// Gives what `lstat` gives of kind, mode, links, owner, identity and size. The rest is zero where the system lets it be left out.
//
// Linux (from 6.13 on) gives a file whose times were asked for a new one at its next write, and a sync then writes the file's metadata, too.
int larder_lstat_without_times(const char *path, struct stat *status);

// Changes the lock that an open file has on one byte, and waits for nobody: `type` is F_RDLCK, F_WRLCK or F_UNLCK.
//
// The lock belongs to the open file, as that of `flock` does, so closing another descriptor of the file does not drop it. It excludes locks
// of the same byte alone. -1 with EAGAIN or EACCES says that another lock is in the way, and the old one is kept.
int larder_lock_byte(int descriptor, int type, off_t offset);

// Gives an open file the extended attributes of another one that apps can set, no others of that kind, and on Apple's systems its class of
// protection. Returns 0, or -1 with `errno` where an attribute could not be read or has no room. -1 with EPERM or EACCES says that the file
// may not get the class now, as while the device is locked.
//
// An attribute that the process may not set, or that the file system does not have, is left out.
// On Linux these are the attributes in the namespace "user". Those of the system (ACLs, labels) follow from the directory.
int larder_copy_attributes(int source, int target);

#endif

// A disk whose power can be cut: what a kernel has written to it, and what it has made durable. Linux alone.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct power_disk;

/// What of the writes that no flush has followed survives a cut.
enum power_kept {
  power_kept_all,
  power_kept_none,
  /// Each sector or not, by chance.
  power_kept_some,
  /// The first of them, in the order in which they came.
  power_kept_first,
};

/// Makes a disk of these bytes, and shows it as the content of a file that exists, by FUSE. The number of the error is in `errno`.
struct power_disk *power_disk_start(const void *bytes, size_t size, const char *path);

/// Takes the disk away; whatever uses it must have ended.
void power_disk_stop(struct power_disk *disk);

/// Writes what a cut of the power at this moment leaves.
void power_disk_cut(struct power_disk *disk, enum power_kept kept, uint64_t seed, void *image);

/// Has the disk wait before this many writes and flushes from now on, and write 8 bytes to the descriptor then; 0 for not at all.
void power_disk_hold(struct power_disk *disk, long requests);

/// Returns whether the disk is waiting.
int power_disk_is_held(struct power_disk *disk);

/// The writes and flushes so far.
void power_disk_counts(struct power_disk *disk, long *writes, long *flushes);

/// Returns the descriptor that becomes readable when the disk begins to wait.
int power_disk_descriptor(struct power_disk *disk);

/// Mounts the file system in a file by way of a loop device that is freed with it. Returns 0, or the number of an error.
int power_mount(const char *file, const char *directory, const char *options);

/// Unmounts, waiting up to ten seconds for the last file to be closed. Returns 0, or the number of an error.
int power_unmount(const char *directory);

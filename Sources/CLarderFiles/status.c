#define _GNU_SOURCE

#include "CLarderFiles.h"

#include <fcntl.h>
#include <string.h>

#if defined(__linux__)
#include <sys/sysmacros.h>
#endif

int larder_lstat_without_times(const char *path, struct stat *status) {
#if defined(__linux__) && defined(STATX_SIZE) && (!defined(__ANDROID__) || __ANDROID_API__ >= 30)
  const unsigned int wanted = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID | STATX_GID | STATX_INO | STATX_SIZE;
  struct statx found;
  // Whatever prevents it, also a sandbox that does not know the call, is for `lstat` to tell.
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, wanted, &found) == 0 && (found.stx_mask & wanted) == wanted) {
    memset(status, 0, sizeof *status);
    status->st_dev = makedev(found.stx_dev_major, found.stx_dev_minor);
    status->st_ino = found.stx_ino;
    status->st_mode = found.stx_mode;
    status->st_nlink = found.stx_nlink;
    status->st_uid = found.stx_uid;
    status->st_gid = found.stx_gid;
    status->st_size = (off_t)found.stx_size;
    return 0;
  }
#endif
  return lstat(path, status);
}

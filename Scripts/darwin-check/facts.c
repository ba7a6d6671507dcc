// Facts of Apple's C library on which code of this package rests. Compiled by check.sh with the headers of macOS, and never run.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define HAS_TYPE(expression, type) _Static_assert(_Generic((expression), type: 1, default: 0), #expression " has another type than " #type)

static struct stat status;
static struct statvfs disk;
static struct timespec moment;
static struct rlimit limit;

// FileStatus and SQLiteFileState read these fields and convert them.
HAS_TYPE(status.st_dev, int);
HAS_TYPE(status.st_ino, unsigned long long);
HAS_TYPE(status.st_mode, unsigned short);
HAS_TYPE(status.st_nlink, unsigned short);
HAS_TYPE(status.st_uid, unsigned int);
HAS_TYPE(status.st_size, long long);
HAS_TYPE(status.st_mtimespec.tv_nsec, long);
HAS_TYPE(status.st_ctimespec.tv_nsec, long);
HAS_TYPE(disk.f_bavail, unsigned int);
HAS_TYPE(moment.tv_nsec, long);
// OpenFiles sets the limit to OPEN_MAX at most.
HAS_TYPE(limit.rlim_cur, unsigned long long);
_Static_assert(OPEN_MAX == 10240, "OPEN_MAX");
// SystemCall: the commands that reach the drive, and the errors that are no failure of the drive.
_Static_assert(F_FULLFSYNC == 51 && F_BARRIERFSYNC == 85, "fcntl");
// CLarderFiles: the lock of a database's byte, and the class of protection.
_Static_assert(F_OFD_SETLK == 90 && F_GETPROTECTIONCLASS == 63 && F_SETPROTECTIONCLASS == 64, "fcntl");
_Static_assert(ENOTSUP == 45 && EOPNOTSUPP == 102 && EAGAIN == EWOULDBLOCK && EAGAIN == 35 && EDQUOT == 69 && ELOOP == 62, "errno");
_Static_assert((LOCK_SH | LOCK_EX | LOCK_NB | LOCK_UN) == 15, "flock");
_Static_assert(O_CLOEXEC != 0 && O_NOFOLLOW != 0 && O_NONBLOCK != 0 && O_DIRECTORY != 0 && O_EXCL != 0, "open");

// The calls: a missing declaration is an error.
int main(void) {
  int descriptor = open("", O_RDONLY | O_CLOEXEC);
  return fcntl(descriptor, F_FULLFSYNC) + flock(descriptor, LOCK_EX | LOCK_NB) + ftruncate(descriptor, 0) + fchmod(descriptor, 0)
    + fchown(descriptor, 0, 0) + lstat("", &status) + statvfs("", &disk) + (int)pread(descriptor, 0, 0, 0) + (int)pwrite(descriptor, 0, 0, 0)
    + clock_gettime(CLOCK_MONOTONIC, &moment) + getrlimit(RLIMIT_NOFILE, &limit) + (fdopendir(descriptor) != 0) + access("", W_OK);
}

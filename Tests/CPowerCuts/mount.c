// Mounting by system calls, since a cut needs several of them and a process each would take most of the time.
#ifdef __linux__
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "power.h"

/// Makes a loop device of a file, which is freed at its last close; returns its descriptor, or -1.
static int attach(const char *file, char *name, size_t size) {
  int backing = open(file, O_RDWR | O_CLOEXEC);
  if (backing < 0) return -1;
  struct stat status;
  int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  int device = -1;
  // Somebody else may take the free one first.
  for (int attempt = 0; attempt < 100 && control >= 0 && fstat(backing, &status) == 0; attempt++) {
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) break;
    snprintf(name, size, "/dev/loop%d", number);
    device = open(name, O_RDWR | O_CLOEXEC);
    if (device < 0) break;
    struct loop_config config = {.fd = (unsigned)backing, .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
    if (ioctl(device, LOOP_CONFIGURE, &config) == 0) break;
    int error = errno;
    close(device);
    device = -1;
    errno = error;
    if (error != EBUSY) break;
  }
  int error = errno;
  if (control >= 0) close(control);
  close(backing);
  errno = error;
  return device;
}

int power_mount(const char *file, const char *directory, const char *options) {
  char name[32];
  int device = attach(file, name, sizeof name);
  if (device < 0) return errno;
  int result = mount(name, directory, "ext4", MS_NOATIME, options) == 0 ? 0 : errno;
  close(device);
  return result;
}

int power_unmount(const char *directory) {
  // A store that has folded its journal closes the old file beside whatever comes next, also behind its own closing.
  for (int attempt = 0; umount2(directory, 0) != 0; attempt++) {
    if (errno != EBUSY || attempt == 5000) return errno;
    poll(0, 0, 2);
  }
  return 0;
}
#else
#include <errno.h>

#include "power.h"

int power_mount(const char *file, const char *directory, const char *options) { return file && directory && options ? ENOTSUP : EINVAL; }
int power_unmount(const char *directory) { return directory ? ENOTSUP : EINVAL; }
#endif

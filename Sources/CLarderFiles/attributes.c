#define _GNU_SOURCE

#include "CLarderFiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<sys/xattr.h>)
#include <sys/xattr.h>

#if defined(__APPLE__)
#define NO_ATTRIBUTE ENOATTR
static ssize_t list(int file, char *names, size_t size) { return flistxattr(file, names, size, 0); }
static ssize_t get(int file, const char *name, void *value, size_t size) { return fgetxattr(file, name, value, size, 0, 0); }
static int set(int file, const char *name, const void *value, size_t size) { return fsetxattr(file, name, value, size, 0, 0); }
static int drop(int file, const char *name) { return fremovexattr(file, name, 0); }
static int is_of_app(const char *name) { return strncmp(name, "com.apple.system.", 17) != 0; }
#else
#define NO_ATTRIBUTE ENODATA
static ssize_t list(int file, char *names, size_t size) { return flistxattr(file, names, size); }
static ssize_t get(int file, const char *name, void *value, size_t size) { return fgetxattr(file, name, value, size); }
static int set(int file, const char *name, const void *value, size_t size) { return fsetxattr(file, name, value, size, 0); }
static int drop(int file, const char *name) { return fremovexattr(file, name); }
static int is_of_app(const char *name) { return strncmp(name, "user.", 5) == 0; }
#endif

// Another program may make an attribute longer between two calls. The room for it is MARGIN bytes at first, and twice as large at each of the
// ATTEMPTS: a program that changes it in the same rhythm is overtaken.
enum { ATTEMPTS = 16, MARGIN = 256 };

// Frees a buffer and keeps `errno`.
static void release(void *buffer) {
  const int number = errno;
  free(buffer);
  errno = number;
}

static int is_refusal(int number) { return number == EPERM || number == EACCES || number == ENOTSUP; }

// Reads an attribute (of a name), or the names of all (no name), into a buffer that the caller frees; returns its size, or -1.
static ssize_t read_all(int file, const char *name, char **value) {
  size_t room = 0;
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    ssize_t size = name ? get(file, name, NULL, 0) : list(file, NULL, 0);
    if (size < 0) return -1;
    // A room of 0 bytes would ask for the length again.
    room = (size_t)size + MARGIN > 2 * room ? (size_t)size + MARGIN : 2 * room;
    if (!(*value = malloc(room))) return -1;
    size = name ? get(file, name, *value, room) : list(file, *value, room);
    if (size >= 0) return size;
    release(*value);
    *value = NULL;
    if (errno != ERANGE) return -1;
  }
  return -1;
}

static int copy_one(int source, int target, const char *name) {
  char *value = NULL;
  const ssize_t size = read_all(source, name, &value);
  // It may have been removed since it was listed.
  if (size < 0) return errno == NO_ATTRIBUTE || errno == ENOTSUP ? 0 : -1;
  const int result = set(target, name, value, (size_t)size);
  release(value);
  return result == 0 || is_refusal(errno) ? 0 : -1;
}

// Drops an attribute that the source does not have, as one that was removed between two copies.
static int drop_one(int source, int target, const char *name) {
  if (get(source, name, NULL, 0) >= 0 || errno != NO_ATTRIBUTE) return 0;
  return drop(target, name) == 0 || errno == NO_ATTRIBUTE || is_refusal(errno) ? 0 : -1;
}

// Calls a body with the name of each attribute of a file that apps can set.
static int for_each(int file, int source, int target, int body(int, int, const char *)) {
  char *names = NULL;
  const ssize_t size = read_all(file, NULL, &names);
  if (size < 0) return errno == ENOTSUP ? 0 : -1;
  int result = 0;
  for (ssize_t start = 0; result == 0 && start < size; start += (ssize_t)strlen(names + start) + 1) {
    if (is_of_app(names + start)) result = body(source, target, names + start);
  }
  release(names);
  return result;
}

static int copy_extended(int source, int target) {
  return for_each(target, source, target, drop_one) == 0 ? for_each(source, source, target, copy_one) : -1;
}
#else
static int copy_extended(int source, int target) {
  (void)source, (void)target;
  return 0;
}
#endif

int larder_copy_attributes(int source, int target) {
  if (copy_extended(source, target) != 0) return -1;
#if defined(F_GETPROTECTIONCLASS) && defined(F_SETPROTECTIONCLASS)
  const int protection = fcntl(source, F_GETPROTECTIONCLASS);
  // A class that the file has from its directory already is not set again.
  if (protection > 0 && fcntl(target, F_GETPROTECTIONCLASS) != protection && fcntl(target, F_SETPROTECTIONCLASS, protection) != 0) {
    return errno == ENOTSUP ? 0 : -1;
  }
#endif
  return 0;
}

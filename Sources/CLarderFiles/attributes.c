#define _GNU_SOURCE

#include "CLarderFiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<sys/xattr.h>)
#include <sys/xattr.h>

#if defined(__APPLE__)
static ssize_t list(int file, char *names, size_t size) { return flistxattr(file, names, size, 0); }
static ssize_t get(int file, const char *name, void *value, size_t size) { return fgetxattr(file, name, value, size, 0, 0); }
static int set(int file, const char *name, const void *value, size_t size) { return fsetxattr(file, name, value, size, 0, 0); }
static int is_of_app(const char *name) { return strncmp(name, "com.apple.system.", 17) != 0; }
#else
static ssize_t list(int file, char *names, size_t size) { return flistxattr(file, names, size); }
static ssize_t get(int file, const char *name, void *value, size_t size) { return fgetxattr(file, name, value, size); }
static int set(int file, const char *name, const void *value, size_t size) { return fsetxattr(file, name, value, size, 0); }
static int is_of_app(const char *name) { return strncmp(name, "user.", 5) == 0; }
#endif

static int copy_one(int source, int target, const char *name) {
  ssize_t size = get(source, name, NULL, 0);
  if (size < 0) return 0;
  void *value = malloc((size_t)size + 1);
  if (!value) return 0;
  size = get(source, name, value, (size_t)size);
  const int is_set = size >= 0 && set(target, name, value, (size_t)size) == 0;
  free(value);
  return is_set;
}

static int copy_extended(int source, int target) {
  ssize_t size = list(source, NULL, 0);
  if (size <= 0) return 0;
  char *names = malloc((size_t)size);
  if (!names) return 0;
  // Another program may have added one since: the list is then too long, and nothing is copied.
  size = list(source, names, (size_t)size);
  int count = 0;
  for (ssize_t start = 0; start < size; start += (ssize_t)strlen(names + start) + 1) {
    if (is_of_app(names + start)) count += copy_one(source, target, names + start);
  }
  free(names);
  return count;
}
#else
static int copy_extended(int source, int target) {
  (void)source, (void)target;
  return 0;
}
#endif

int larder_copy_attributes(int source, int target) {
  int count = copy_extended(source, target);
#if defined(F_GETPROTECTIONCLASS) && defined(F_SETPROTECTIONCLASS)
  const int protection = fcntl(source, F_GETPROTECTIONCLASS);
  // A class that the file has from its directory already is not set again.
  if (protection > 0 && fcntl(target, F_GETPROTECTIONCLASS) != protection) {
    if (fcntl(target, F_SETPROTECTIONCLASS, protection) == 0) {
      count++;
    } else if (errno == EPERM || errno == EACCES) {
      return -1;
    }
  }
#endif
  return count;
}

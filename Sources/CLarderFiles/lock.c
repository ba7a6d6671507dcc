#define _GNU_SOURCE

#include "CLarderFiles.h"

#include <fcntl.h>
#include <unistd.h>

int larder_lock_byte(int descriptor, int type, off_t offset) {
  struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
  return fcntl(descriptor, F_OFD_SETLK, &lock);
}

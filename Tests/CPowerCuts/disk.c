// The disk: a file in memory that a thread serves to the kernel by the protocol of FUSE. A loop device makes a disk of it, which has a cache of
// writes that is lost with the power: only a flush makes them durable, and until then each sector of them may survive or not.
#ifdef __linux__
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "power.h"

enum { largest_write = 128 << 10, sector = 512, superblock = 4096 };

struct pending {
  struct pending *next;
  size_t offset, size;
  uint8_t bytes[];
};

struct power_disk {
  /// Open in the thread alone, and in both.
  int fuse, event;
  /// What starting has come to, -1 while it goes on.
  int error;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t released;
  char *path;
  size_t size;
  /// What is durable, and what is read.
  uint8_t *durable, *current;
  struct pending *first, **last;
  long pending_count;
  long writes, flushes;
  /// The number of writes and flushes after which the disk waits, or 0.
  long hold_after;
  int held;
};

static void forget_pending(struct power_disk *disk) {
  while (disk->first) {
    struct pending *next = disk->first->next;
    free(disk->first);
    disk->first = next;
  }
  disk->last = &disk->first;
  disk->pending_count = 0;
}

/// Waits before a write or flush if that was asked for.
static void wait_if_held(struct power_disk *disk) {
  if (disk->hold_after == 0 || disk->writes + disk->flushes < disk->hold_after) return;
  disk->held = 1;
  uint64_t one = 1;
  if (write(disk->event, &one, sizeof one) < 0) disk->held = 0;
  while (disk->held) pthread_cond_wait(&disk->released, &disk->lock);
}

static int take_write(struct power_disk *disk, size_t offset, const uint8_t *bytes, size_t size) {
  if (offset > disk->size || size > disk->size - offset) return ENOSPC;
  struct pending *entry = malloc(sizeof *entry + size);
  if (!entry) return ENOMEM;
  *entry = (struct pending){.offset = offset, .size = size};
  memcpy(entry->bytes, bytes, size);
  pthread_mutex_lock(&disk->lock);
  wait_if_held(disk);
  disk->writes++;
  memcpy(disk->current + offset, bytes, size);
  *disk->last = entry;
  disk->last = &entry->next;
  disk->pending_count++;
  pthread_mutex_unlock(&disk->lock);
  return 0;
}

static void flush(struct power_disk *disk) {
  pthread_mutex_lock(&disk->lock);
  wait_if_held(disk);
  disk->flushes++;
  for (struct pending *entry = disk->first; entry; entry = entry->next) memcpy(disk->durable + entry->offset, entry->bytes, entry->size);
  forget_pending(disk);
  pthread_mutex_unlock(&disk->lock);
}

static void answer(struct power_disk *disk, const struct fuse_in_header *request, int error, const void *bytes, size_t size) {
  struct fuse_out_header header = {.len = sizeof header + size, .error = -error, .unique = request->unique};
  struct iovec parts[] = {{&header, sizeof header}, {(void *)bytes, size}};
  // A request may have been given up meanwhile, which is no error.
  if (writev(disk->fuse, parts, size ? 2 : 1) < 0 && errno != ENOENT) perror("power disk: answer");
}

static void take_request(struct power_disk *disk, const struct fuse_in_header *request, const void *body) {
  switch (request->opcode) {
    case FUSE_INIT: {
      const struct fuse_init_in *in = body;
      struct fuse_init_out out = {
          .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_readahead = in->max_readahead,
          .flags = in->flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES), .max_background = 16, .congestion_threshold = 12,
          .max_write = largest_write, .time_gran = 1, .max_pages = largest_write / 4096};
      return answer(disk, request, 0, &out, sizeof out);
    }
    case FUSE_GETATTR: case FUSE_SETATTR: {
      struct fuse_attr_out out = {
          .attr_valid = 1 << 20,
          .attr = {.ino = 1, .size = disk->size, .blocks = disk->size / 512, .mode = S_IFREG | 0600, .nlink = 1, .blksize = 4096}};
      return answer(disk, request, 0, &out, sizeof out);
    }
    case FUSE_OPEN: {
      struct fuse_open_out out = {.open_flags = FOPEN_KEEP_CACHE};
      return answer(disk, request, 0, &out, sizeof out);
    }
    case FUSE_READ: {
      const struct fuse_read_in *in = body;
      size_t left = in->offset < disk->size ? disk->size - in->offset : 0;
      return answer(disk, request, 0, disk->current + in->offset, in->size < left ? in->size : left);
    }
    case FUSE_WRITE: {
      const struct fuse_write_in *in = body;
      int error = take_write(disk, in->offset, (const uint8_t *)(in + 1), in->size);
      struct fuse_write_out out = {.size = in->size};
      return error ? answer(disk, request, error, 0, 0) : answer(disk, request, 0, &out, sizeof out);
    }
    case FUSE_FSYNC:
      flush(disk);
      return answer(disk, request, 0, 0, 0);
    case FUSE_FLUSH: case FUSE_RELEASE: case FUSE_ACCESS:
      return answer(disk, request, 0, 0, 0);
    case FUSE_STATFS: {
      struct fuse_statfs_out out = {.st = {.blocks = disk->size / 4096, .bsize = 4096, .frsize = 4096, .namelen = 255}};
      return answer(disk, request, 0, &out, sizeof out);
    }
    // These want no answer.
    case FUSE_FORGET: case FUSE_BATCH_FORGET: case FUSE_INTERRUPT: case FUSE_DESTROY: return;
    default: return answer(disk, request, request->opcode == FUSE_FALLOCATE ? EOPNOTSUPP : ENOSYS, 0, 0);
  }
}

/// Mounts the file. The connection to the kernel is this thread's alone: it must end with this thread where the program is killed, also while
/// another one waits for the disk within the kernel.
static int connect_kernel(struct power_disk *disk) {
  unsigned event = (unsigned)disk->event;
  if (close_range(event + 1, ~0U, CLOSE_RANGE_UNSHARE) != 0 || (event > 3 && close_range(3, event - 1, 0) != 0)) return errno;
  disk->fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (disk->fuse < 0) return errno;
  char options[80];
  snprintf(options, sizeof options, "fd=%d,rootmode=100600,user_id=0,group_id=0", disk->fuse);
  return mount("power", disk->path, "fuse", MS_NOSUID | MS_NODEV, options) == 0 ? 0 : errno;
}

static void *serve(void *argument) {
  struct power_disk *disk = argument;
  int error = connect_kernel(disk);
  pthread_mutex_lock(&disk->lock);
  disk->error = error;
  pthread_cond_broadcast(&disk->released);
  pthread_mutex_unlock(&disk->lock);
  size_t capacity = largest_write + 4096;
  uint8_t *buffer = error ? 0 : malloc(capacity);
  while (buffer) {
    ssize_t count = read(disk->fuse, buffer, capacity);
    if (count < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) continue;
    if (count < (ssize_t)sizeof(struct fuse_in_header)) break;
    take_request(disk, (struct fuse_in_header *)buffer, buffer + sizeof(struct fuse_in_header));
  }
  free(buffer);
  return 0;
}

struct power_disk *power_disk_start(const void *bytes, size_t size, const char *path) {
  struct power_disk *disk = calloc(1, sizeof *disk);
  if (!disk) return 0;
  disk->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  disk->path = strdup(path);
  disk->size = size;
  disk->durable = malloc(size);
  disk->current = malloc(size);
  disk->last = &disk->first;
  disk->error = -1;
  if (disk->event < 3 || !disk->path || !disk->durable || !disk->current) return 0;  // the program ends then
  memcpy(disk->durable, bytes, size);
  memcpy(disk->current, bytes, size);
  pthread_mutex_init(&disk->lock, 0);
  pthread_cond_init(&disk->released, 0);
  errno = pthread_create(&disk->thread, 0, serve, disk);
  if (errno) return 0;
  pthread_mutex_lock(&disk->lock);
  while (disk->error < 0) pthread_cond_wait(&disk->released, &disk->lock);
  pthread_mutex_unlock(&disk->lock);
  errno = disk->error;
  return errno ? 0 : disk;
}

void power_disk_stop(struct power_disk *disk) {
  power_disk_hold(disk, 0);
  umount2(disk->path, MNT_DETACH);
  pthread_join(disk->thread, 0);
  close(disk->event);
  forget_pending(disk);
  free(disk->path);
  free(disk->durable);
  free(disk->current);
  free(disk);
}

/// Returns the next number of a SplitMix64.
static uint64_t next_number(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

void power_disk_cut(struct power_disk *disk, enum power_kept kept, uint64_t seed, void *image) {
  pthread_mutex_lock(&disk->lock);
  memcpy(image, kept == power_kept_all ? disk->current : disk->durable, disk->size);
  if (kept == power_kept_some || kept == power_kept_first) {
    long left = kept == power_kept_first ? (long)(next_number(&seed) % (uint64_t)(disk->pending_count + 1)) : disk->pending_count;
    for (struct pending *entry = disk->first; entry && left > 0; entry = entry->next, left--) {
      for (size_t at = 0; at < entry->size;) {
        // The superblock of the file system counts as one sector: its checksum is not made for halves.
        size_t step = entry->offset + at < superblock ? superblock : sector;
        if (step > entry->size - at) step = entry->size - at;
        if (kept == power_kept_first || next_number(&seed) % 2) memcpy((uint8_t *)image + entry->offset + at, entry->bytes + at, step);
        at += step;
      }
    }
  }
  pthread_mutex_unlock(&disk->lock);
}

void power_disk_hold(struct power_disk *disk, long requests) {
  pthread_mutex_lock(&disk->lock);
  disk->hold_after = requests ? disk->writes + disk->flushes + requests : 0;
  disk->held = 0;
  uint64_t count;
  if (read(disk->event, &count, sizeof count) < 0 && errno != EAGAIN) perror("power disk: hold");
  pthread_cond_broadcast(&disk->released);
  pthread_mutex_unlock(&disk->lock);
}

int power_disk_is_held(struct power_disk *disk) {
  pthread_mutex_lock(&disk->lock);
  int held = disk->held;
  pthread_mutex_unlock(&disk->lock);
  return held;
}

void power_disk_counts(struct power_disk *disk, long *writes, long *flushes) {
  pthread_mutex_lock(&disk->lock);
  *writes = disk->writes;
  *flushes = disk->flushes;
  pthread_mutex_unlock(&disk->lock);
}

int power_disk_descriptor(struct power_disk *disk) { return disk->event; }
#else
#include <errno.h>

#include "power.h"

// Elsewhere there is no such disk, and nobody gets as far as to ask for more.
struct power_disk *power_disk_start(const void *bytes, size_t size, const char *path) {
  (void)bytes, (void)size, (void)path;
  errno = ENOTSUP;
  return 0;
}
void power_disk_stop(struct power_disk *disk) { (void)disk; }
void power_disk_cut(struct power_disk *disk, enum power_kept kept, uint64_t seed, void *image) {
  (void)disk, (void)kept, (void)seed, (void)image;
}
void power_disk_hold(struct power_disk *disk, long requests) { (void)disk, (void)requests; }
int power_disk_is_held(struct power_disk *disk) { return disk != 0; }
void power_disk_counts(struct power_disk *disk, long *writes, long *flushes) { *writes = *flushes = disk != 0; }
int power_disk_descriptor(struct power_disk *disk) { return disk ? 0 : -1; }
#endif

#define _GNU_SOURCE
#include "CEndurance.h"
#include <pthread.h>
#include <time.h>

#if defined(__GLIBC__)
#include <malloc.h>

size_t endurance_allocated_bytes(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void endurance_trim(void) { malloc_trim(0); }

int endurance_set_stack_size(size_t bytes) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return 0;
  int result = pthread_attr_setstacksize(&attributes, bytes);
  if (result == 0) result = pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  return result == 0;
}

size_t endurance_stack_size(void) {
  pthread_attr_t attributes;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  if (pthread_attr_getstacksize(&attributes, &size) != 0) size = 0;
  pthread_attr_destroy(&attributes);
  return size;
}
#else
#include <malloc/malloc.h>

size_t endurance_allocated_bytes(void) {
  malloc_statistics_t statistics;
  malloc_zone_statistics(NULL, &statistics);
  return statistics.size_in_use;
}

void endurance_trim(void) { malloc_zone_pressure_relief(NULL, 0); }
// Threads other than the main one have 512 KB there anyway.
int endurance_set_stack_size(size_t bytes) { return bytes == 512 << 10; }
size_t endurance_stack_size(void) { return pthread_get_stacksize_np(pthread_self()); }
#endif

uint64_t endurance_processor_time(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

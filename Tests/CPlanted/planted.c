#include "CPlanted.h"
#include <stdlib.h>

int planted_overflow(long count) {
  volatile char *block = malloc((size_t)count + 30);
  if (block == NULL) return 0;
  int found = block[count + 30];
  free((void *)block);
  return found;
}

int planted_use_after_free(long count) {
  volatile char *block = malloc((size_t)count + 30);
  if (block == NULL) return 0;
  block[0] = 1;
  free((void *)block);
  return block[0];
}

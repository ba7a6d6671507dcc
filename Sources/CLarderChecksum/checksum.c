#include "CLarderChecksum.h"

#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

// SSE4.2, which every x86-64 processor since 2008 has, and which compilers must not take for granted.
bool larder_crc32c_is_available(void) {
  unsigned int a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 20));
}

#define LARDER_TARGET __attribute__((target("sse4.2")))
#define LARDER_CRC_8(state, number) ((uint32_t)__builtin_ia32_crc32di((state), (number)))
#define LARDER_CRC_1(state, byte) __builtin_ia32_crc32qi((state), (byte))

#elif defined(__aarch64__) && (defined(__APPLE__) || defined(__linux__))

#if defined(__APPLE__)
#include <sys/sysctl.h>

bool larder_crc32c_is_available(void) {
  int value = 0;
  size_t size = sizeof(value);
  return sysctlbyname("hw.optional.armv8_crc32", &value, &size, NULL, 0) == 0 && value == 1;
}
#else
#include <sys/auxv.h>

bool larder_crc32c_is_available(void) { return (getauxval(AT_HWCAP) & (1ul << 7)) != 0; }  // HWCAP_CRC32
#endif

#define LARDER_TARGET __attribute__((target("crc")))
#define LARDER_CRC_8(state, number) __builtin_arm_crc32cd((state), (number))
#define LARDER_CRC_1(state, byte) __builtin_arm_crc32cb((state), (byte))

#endif

#if defined(LARDER_TARGET)

// Both families are little-endian here, as the checksum wants it.
LARDER_TARGET uint32_t larder_crc32c_update(uint32_t state, const void *bytes, size_t count) {
  const unsigned char *next = bytes;
  for (; count >= 8; count -= 8, next += 8) {
    uint64_t number;
    memcpy(&number, next, 8);
    state = LARDER_CRC_8(state, number);
  }
  for (; count > 0; count--, next++) state = LARDER_CRC_1(state, *next);
  return state;
}

#else

bool larder_crc32c_is_available(void) { return false; }
uint32_t larder_crc32c_update(uint32_t state, const void *bytes, size_t count) {
  (void)bytes, (void)count;
  return state;
}

#endif

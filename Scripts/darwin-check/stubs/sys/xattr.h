// The calls for extended attributes of macOS, of which the wheel has no header. See the manual pages getxattr(2), setxattr(2), listxattr(2)
// and removexattr(2).
#ifndef _SYS_XATTR_H_
#define _SYS_XATTR_H_

#include <sys/types.h>

ssize_t fgetxattr(int descriptor, const char *name, void *value, size_t size, u_int32_t position, int options);
int fsetxattr(int descriptor, const char *name, const void *value, size_t size, u_int32_t position, int options);
ssize_t flistxattr(int descriptor, char *names, size_t size, int options);
int fremovexattr(int descriptor, const char *name, int options);

#endif

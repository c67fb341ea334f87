// Preloaded into iodine and iodined, which want to be root and to have a TUN
// device: they are told so. What they exchange over DNS is all real.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

static int tun = -1;

uid_t geteuid(void) { return 0; }
uid_t getuid(void) { return 0; }

int open(const char *path, int flags, ...) {
  static int (*real)(const char *, int, ...);
  va_list more;
  va_start(more, flags);
  int mode = va_arg(more, int);
  va_end(more);
  if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
  if (strcmp(path, "/dev/net/tun") != 0) return real(path, flags, mode);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) return -1;
  return tun = pair[0];
}

int open64(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int mode = va_arg(more, int);
  va_end(more);
  return open(path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...) {
  static int (*real)(int, unsigned long, void *);
  va_list more;
  va_start(more, request);
  void *argument = va_arg(more, void *);
  va_end(more);
  if (!real) real = (int (*)(int, unsigned long, void *))dlsym(RTLD_NEXT, "ioctl");
  return fd == tun && tun >= 0 ? 0 : real(fd, request, argument);
}

// It would set addresses with ifconfig or ip.
int system(const char *command) { return 0; }

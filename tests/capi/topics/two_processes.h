/* SPDX-License-Identifier: MIT */
/* For the programs that run once more as another process, in a folder of their own. They define _GNU_SOURCE. */
#pragma once

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/capi/topics/topics_test.h"

extern char** environ;

/* Starts this program with the arguments "other" and the folder. */
static inline pid_t start_other(const char* folder) {
  char self[] = "/proc/self/exe";
  char role[] = "other";
  char place[256];
  snprintf(place, sizeof place, "%s", folder);
  char* const arguments[] = {self, role, place, NULL};
  pid_t child = 0;
  EXPECT(0, posix_spawn(&child, self, NULL, NULL, arguments, environ));
  return child;
}
/* Waits until it ended well. */
static inline void await_other(pid_t child) {
  int status = -1;
  EXPECT(child, waitpid(child, &status, 0));
  EXPECT(0, status);
}
/* Returns the exit code of the program. */
static inline int remove_folder(const char* folder) {
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) == 0 ? 0 : 1;
}

/* SPDX-License-Identifier: MIT */
/* A child makes and closes objects while another thread of its parent did so at the fork. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define ZMQ_BUILD_DRAFT_API
#include "capi/zmq.h"

#undef NDEBUG
#include <assert.h>

static void make_and_close(void) {
  void* timers = zmq_timers_new();
  void* poller = zmq_poller_new();
  assert(timers != NULL && poller != NULL);
  assert(zmq_timers_destroy(&timers) == 0);
  assert(zmq_poller_destroy(&poller) == 0);
}

static atomic_int done;
static void* make_all_the_time(void* unused) {
  while (!atomic_load(&done)) {
    make_and_close();
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  make_and_close();
  assert(pthread_create(&thread, NULL, make_all_the_time, NULL) == 0);
  for (int i = 0; i < 300; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      make_and_close();
      _exit(0);
    }
    int status = -1;
    assert(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  }
  atomic_store(&done, 1);
  assert(pthread_join(thread, NULL) == 0);
  return 0;
}

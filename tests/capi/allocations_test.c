/* SPDX-License-Identifier: MIT */
/* Once the pools are warm, a message allocates no memory, sealed by CURVE or not. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capi/zmq.h"

#undef NDEBUG
#include <assert.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void) { return 0; } /* the sanitizers have a malloc of their own */
#else

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static unsigned long allocations; /* by any thread, of the whole program */

static void count(void) { __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED); }
static unsigned long counted(void) { return __atomic_load_n(&allocations, __ATOMIC_RELAXED); }

void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}
void* realloc(void* memory, size_t size) {
  count();
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  count();
  *memory = __libc_memalign(alignment, size);
  return *memory == NULL;
}

/* The pools are bounded: they keep the memory of some of the largest messages that wait in a queue. */
enum { kMessages = 2000, kLargest = 65536 };
static const int kBursts[] = {4, 12};
static char sent[kLargest];
static char received[kLargest];

static void carry(void* push, void* pull, int size, int burst) {
  for (int done = 0; done < kMessages; done += burst) {
    for (int i = 0; i < burst; ++i) {
      sent[0] = (char)i;
      assert(zmq_send(push, sent, (size_t)size, 0) == size);
    }
    for (int i = 0; i < burst; ++i) {
      assert(zmq_recv(pull, received, sizeof received, 0) == size);
      assert(received[0] == (char)i && received[size - 1] == sent[size - 1]);
    }
  }
}

static void measure(int curve) {
  void* context = zmq_ctx_new();
  void* pull = zmq_socket(context, ZMQ_PULL);
  void* push = zmq_socket(context, ZMQ_PUSH);
  if (curve) {
    const int one = 1;
    char public_key[41];
    char secret_key[41];
    assert(zmq_curve_keypair(public_key, secret_key) == 0);
    assert(zmq_setsockopt(pull, ZMQ_CURVE_SERVER, &one, sizeof one) == 0);
    assert(zmq_setsockopt(pull, ZMQ_CURVE_SECRETKEY, secret_key, 40) == 0);
    assert(zmq_setsockopt(push, ZMQ_CURVE_SERVERKEY, public_key, 40) == 0);
    assert(zmq_setsockopt(push, ZMQ_CURVE_PUBLICKEY, public_key, 40) == 0);
    assert(zmq_setsockopt(push, ZMQ_CURVE_SECRETKEY, secret_key, 40) == 0);
  }
  char endpoint[64];
  size_t length = sizeof endpoint;
  assert(zmq_bind(pull, "tcp://127.0.0.1:*") == 0);
  assert(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &length) == 0);
  assert(zmq_connect(push, endpoint) == 0);
  static const int kSizes[] = {64, 1024, 65536};
  for (size_t i = 0; i < 2 * sizeof kSizes / sizeof kSizes[0]; ++i) {
    const int size = kSizes[i / 2];
    const int burst = kBursts[i % 2];
    carry(push, pull, size, burst);
    const unsigned long before = counted();
    carry(push, pull, size, burst);
    const unsigned long made = counted() - before;
    printf("%s, %d bytes, %d at once: %lu allocations for %d messages\n", curve ? "CURVE" : "NULL", size, burst, made,
           kMessages);
    /* A queue may once be longer than before; a message costs none. */
    assert(made * 50 < kMessages);
  }
  assert(zmq_close(push) == 0 && zmq_close(pull) == 0);
  assert(zmq_ctx_term(context) == 0);
}

int main(void) {
  assert(counted() > 0 || malloc(1) != NULL);
  assert(counted() > 0);
  measure(0);
  if (zmq_has("curve")) {
    measure(1);
  }
  return 0;
}
#endif

/* SPDX-License-Identifier: MIT */
/* zmq.h compiles alone in strict C, with the drafts, and keeps libzmq's layouts. Compiling this file is the test. */
#define ZMQ_BUILD_DRAFT_API
#include "capi/zmq.h"

_Static_assert(ZMQ_VERSION == 40305, "the version that programs switch features on");
_Static_assert(sizeof(zmq_msg_t) == 64, "allocated by programs");
_Static_assert(_Alignof(zmq_msg_t) == sizeof(void*), "allocated by programs");
_Static_assert(sizeof(zmq_pollitem_t) == 2 * sizeof(void*), "allocated by programs");
_Static_assert(ETERM == 156384765 && EFSM == 156384763, "errno values are part of the interface");
_Static_assert(ZMQ_BINDTODEVICE == 92 && ZMQ_TOPICS_COUNT == 116, "numbers are part of the interface");
_Static_assert(ZMQ_PROTOCOL_ERROR_WS_UNSPECIFIED == 0x30000000, "numbers are part of the interface");

int main(void) { return 0; }

/* SPDX-License-Identifier: MIT */
/* The text of the last error, of every call of Weft's C interfaces: zmq.h and weft_topics.h. */
#pragma once

#if defined(__GNUC__)
#define WEFT_EXPORT __attribute__((visibility("default")))
#else
#define WEFT_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The text of the last call of this thread that failed: the cause, then its particulars, in English, without a line
   end, at most 256 bytes. "" if no call of this thread has failed. A call that succeeds leaves the text unchanged. The
   pointer is valid until this thread calls the function again, or ends. Keeps errno. Never NULL. */
WEFT_EXPORT const char* weft_last_error_text(void);

#ifdef __cplusplus
}
#endif

#undef WEFT_EXPORT

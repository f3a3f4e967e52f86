/* SPDX-License-Identifier: MIT */
/* For the programs of this folder. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capi/weft_topics.h"

#define WAIT_MS 20000 /* only a test that fails waits so long */

/* The call returns this number; otherwise the program ends with the call and the text of its error. */
#define EXPECT(number, call) expect(number, call, #call, __LINE__)
static inline int expect(int64_t number, int64_t answer, const char* call, int line) {
  if (answer != number) {
    fprintf(stderr, "line %d: %s is %lld, not %lld: %s\n", line, call, (long long)answer, (long long)number,
            weft_last_error_text());
    exit(1);
  }
  return 1;
}
#define REQUIRE(condition) expect(1, (condition) ? 1 : 0, #condition, __LINE__)

static inline weft_topics_options fleet_options(const char* fleet, const char* directory) {
  weft_topics_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.fleet = fleet;
  options.runtime_directory = directory;
  return options;
}
static inline weft_topics* open_fleet(const char* fleet, const char* directory) {
  const weft_topics_options options = fleet_options(fleet, directory);
  weft_topics* topics = NULL;
  EXPECT(0, weft_topics_open(&options, &topics));
  return topics;
}
static inline int has_bytes(const weft_topics_message* message, const char* text) {
  return weft_topics_message_size(message) == strlen(text) &&
         memcmp(weft_topics_message_data(message), text, strlen(text)) == 0;
}
static inline int has_topic(const weft_topics_message* message, const char* text) {
  size_t size = 0;
  const char* topic = weft_topics_message_topic(message, &size);
  return size == strlen(text) && memcmp(topic, text, size) == 0;
}

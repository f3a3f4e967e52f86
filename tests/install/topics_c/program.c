/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <weft_topics.h>

static int fails(const char* call) {
  fprintf(stderr, "%s: %s\n", call, weft_last_error_text());
  return 1;
}

int main(void) {
  weft_topics_options options = {0};
  options.struct_size = sizeof options;
  options.fleet = "inproc:prices"; /* "local": the programs of this user on this host */
  weft_topics* topics = NULL;
  weft_topics_subscription* prices = NULL;
  weft_topics_publisher* publisher = NULL;
  weft_topics_message* message = NULL;
  if (weft_topics_open(&options, &topics) < 0) {
    return fails("open");
  }
  if (weft_topics_subscribe(topics, "px.*", NULL, &prices) < 0) {
    return fails("subscribe");
  }
  if (weft_topics_publisher_open(topics, "px.AAPL", &publisher) < 0) {
    return fails("publisher");
  }
  if (weft_topics_wait_subscribers(publisher, 1, 5000, NULL) < 0) {
    return fails("wait for subscribers");
  }
  if (weft_topics_publisher_publish(publisher, "189.5", 5, NULL) < 0) {
    return fails("publish");
  }
  if (weft_topics_next(prices, 5000, &message) < 0) {
    return fails("next");
  }
  printf("%.*s\n", (int)weft_topics_message_size(message), (const char*)weft_topics_message_data(message));
  weft_topics_message_free(message);
  weft_topics_publisher_close(publisher);
  weft_topics_unsubscribe(prices);
  weft_topics_close(topics);
  return 0;
}

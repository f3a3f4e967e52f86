// SPDX-License-Identifier: MIT
// Requests and services.
#include <string>

#include "capi/topics/call.h"
#include "capi/topics/message_handle.h"
#include "capi/topics/objects.h"
#include "weft/sync/kept_text.h"

using namespace weft;                // NOLINT(google-build-using-namespace)
using namespace weft::capi::topics;  // NOLINT(google-build-using-namespace)

namespace {

// The request inside a message. Fails with invalid_argument if the message is another one.
Result<TakenRequest*> request_of(weft_topics_message* message) noexcept {
  MessageHandle* const handle = WEFT_TRY(message_of(message));
  auto* const request = std::get_if<TakenRequest>(&handle->content);
  return request != nullptr ? Result<TakenRequest*>(request)
                            : Result<TakenRequest*>(Error(Errc::invalid_argument, "the message is no request"));
}

}  // namespace

extern "C" {

int weft_topics_request(weft_topics* topics, const char* topic, const void* data, size_t size, int64_t timeout_ms,
                        const weft_topics_header* headers, size_t header_count, weft_topics_message** reply) {
  if (reply == nullptr) {
    return code_of(kNullPointer);
  }
  *reply = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<TopicsObject>(topics));
    const std::string_view name = WEFT_TRY(text_of(topic));
    const Bytes body = WEFT_TRY(bytes_of(data, size));
    const Headers block = WEFT_TRY(headers_of(headers, header_count));
    const Patience patience = WEFT_TRY(patience_of(timeout_ms));
    return take_message(reply, [&] { return own->value.request(name, body, patience.deadline, block); });
  });
}

int weft_topics_serve(weft_topics* topics, const char* topic, const weft_topics_serve_options* options,
                      weft_topics_service** service) {
  if (service == nullptr) {
    return code_of(kNullPointer);
  }
  *service = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<TopicsObject>(topics));
    const weft_topics_serve_options c = WEFT_TRY(options_of(options));
    ServiceOptions how;
    how.group = text_or_empty(c.group);
    how.queue_max = c.queue_max == 0 ? how.queue_max : c.queue_max;
    RequestQueue made = WEFT_TRY(own->value.serve(WEFT_TRY(text_of(topic)), how));
    return open_handle<ServiceObject>(service, own->context, std::move(made));
  });
}

int weft_topics_service_close(weft_topics_service* service) {
  return call([&] { return HandleTable::instance().close(service, Kind::service); });
}

int weft_topics_service_next(weft_topics_service* service, int64_t timeout_ms, weft_topics_message** request) {
  return next_of<ServiceObject>(service, timeout_ms, request);
}

int weft_topics_service_fd(weft_topics_service* service) { return descriptor_of<ServiceObject>(service); }

int weft_topics_service_status(weft_topics_service* service) {
  return call([&]() -> Result<void> { return WEFT_TRY(pin<ServiceObject>(service))->value.status(); });
}

int weft_topics_reply(weft_topics_message* request, const void* data, size_t size, const weft_topics_header* headers,
                      size_t header_count) {
  return call([&]() -> Result<void> {
    TakenRequest* const taken = WEFT_TRY(request_of(request));
    return taken->reply(WEFT_TRY(bytes_of(data, size)), WEFT_TRY(headers_of(headers, header_count)));
  });
}

int weft_topics_refuse(weft_topics_message* request, int code, const char* text) {
  return call([&]() -> Result<void> {
    TakenRequest* const taken = WEFT_TRY(request_of(request));
    if (code >= WEFT_TOPICS_OK || code < WEFT_TOPICS_CORRUPT) {
      return Error(Errc::invalid_argument, "the code is none of weft_topics_code");
    }
    const StaticText reason =
        text == nullptr ? StaticText() : sync::keep_text({text}, "the service refused the request");
    return taken->refuse(Error(static_cast<Errc>(-code), reason));
  });
}
}

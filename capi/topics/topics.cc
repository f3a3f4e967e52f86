// SPDX-License-Identifier: MIT
// Handles on fleets.
#include <array>
#include <climits>
#include <string>

#include "capi/topics/call.h"
#include "capi/topics/objects.h"
#include "weft/msg/socket/thread_batches.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"
#include "weft/zmtp/z85.h"

using namespace weft;                // NOLINT(google-build-using-namespace)
using namespace weft::capi::topics;  // NOLINT(google-build-using-namespace)

namespace {

// SharedContext: the context of all handles of the process, so that those of an inproc fleet meet. It ends with its
// last handle. A forked child has one of its own.
class SharedContext {
 public:
  [[nodiscard]] static ContextPtr get() {
    static sync::StdMutex mutex;
    static SharedContext* const shared = [] {
      // Without memory for this a child may wait for ever for the lock.
      (void)sys::at_fork([]() WEFT_NOT_CHECKED { mutex.lock(); },  // until the next function
                         []() WEFT_NOT_CHECKED { mutex.unlock(); });
      return new SharedContext;  // outlives every static destructor
    }();
    const sync::LockGuard lock(mutex);
    ContextPtr context = shared->birth_.elsewhere() ? nullptr : shared->context_.lock();
    if (context == nullptr) {
      context = std::make_shared<Context>();
      shared->context_ = context;
      shared->birth_ = sys::Birth();
    }
    return context;
  }

 private:
  std::weak_ptr<Context> context_;
  sys::Birth birth_;
};

Result<void> put_key(std::string& key, const char* text) {
  if (text == nullptr) {
    return {};
  }
  std::array<std::uint8_t, 32> bytes{};
  if (std::string_view(text).size() != z85_encoded_size(bytes.size()) || !z85_decode(text, bytes)) {
    return Error(Errc::invalid_argument, "a CURVE key has 40 characters of Z85");
  }
  key = as_text(bytes);
  return {};
}

Result<TopicsOptions> topics_options_of(const weft_topics_options* given) {
  const weft_topics_options c = WEFT_TRY(options_of(given));
  TopicsOptions options;
  if (c.fleet != nullptr) {
    options.fleet = c.fleet;
  }
  options.space = text_or_empty(c.space);
  options.node = text_or_empty(c.node);
  options.listen = text_or_empty(c.listen);
  options.advertise = text_or_empty(c.advertise);
  options.runtime_directory = text_or_empty(c.runtime_directory);
  options.store_directory = text_or_empty(c.store_directory);
  options.hub = text_or_empty(c.hub);
  options.hosts = c.never_hosts == 0;
  if (c.separator < 0 || c.separator > CHAR_MAX || c.peer_messages_max < 0) {
    return Error(Errc::invalid_argument, "the separator is no character, or a bound is negative");
  }
  options.separator = c.separator == 0 ? options.separator : static_cast<char>(c.separator);
  options.queue_messages_max = c.queue_messages_max == 0 ? options.queue_messages_max : c.queue_messages_max;
  options.queue_bytes_max = c.queue_bytes_max == 0 ? options.queue_bytes_max : c.queue_bytes_max;
  options.peer_messages_max = c.peer_messages_max == 0 ? options.peer_messages_max : c.peer_messages_max;
  options.presence = WEFT_TRY(duration_of(c.presence_ms));
  FleetSecurity& security = options.security;
  WEFT_TRY(put_key(security.curve_server_public, c.curve_server_public));
  WEFT_TRY(put_key(security.curve_server_secret, c.curve_server_secret));
  WEFT_TRY(put_key(security.curve_public, c.curve_public));
  WEFT_TRY(put_key(security.curve_secret, c.curve_secret));
  WEFT_TRY(put_key(security.curve_hub_public, c.curve_hub_public));
  security.tls_certificate = text_or_empty(c.tls_certificate);
  security.tls_key = text_or_empty(c.tls_key);
  security.tls_authorities = text_or_empty(c.tls_authorities);
  security.tls_server_name = text_or_empty(c.tls_server_name);
  security.user = text_or_empty(c.user);
  security.password = text_or_empty(c.password);
  security.token = text_or_empty(c.token);
  security.nkey_seed_file = text_or_empty(c.nkey_seed_file);
  security.credentials_file = text_or_empty(c.credentials_file);
  options.outage_bytes_max = c.outage_bytes_max == 0 ? options.outage_bytes_max : c.outage_bytes_max;
  options.ping_every = c.ping_every_ms == 0 ? options.ping_every : WEFT_TRY(duration_of(c.ping_every_ms));
  return options;
}

}  // namespace

extern "C" {

int weft_topics_open(const weft_topics_options* options, weft_topics** topics) {
  if (topics == nullptr) {
    return code_of(kNullPointer);
  }
  *topics = nullptr;
  return call([&]() -> Result<void> {
    const TopicsOptions opened = WEFT_TRY(topics_options_of(options));
    ContextPtr context = SharedContext::get();
    Topics made = WEFT_TRY(Topics::open(*context, opened));
    return open_handle<TopicsObject>(topics, std::move(context), std::move(made));
  });
}

int weft_topics_close(weft_topics* topics) {
  return call([&] { return HandleTable::instance().close(topics, Kind::topics); });
}

int weft_topics_input_fd(weft_topics* topics) {
  return call([&]() -> Result<int> { return WEFT_TRY(pin<TopicsObject>(topics))->value.node()->input_descriptor(); });
}

int weft_topics_take_input(weft_topics* topics) {
  return call([&]() -> Result<int> {
    const auto own = WEFT_TRY(pin<TopicsObject>(topics));
    if (own->value.node()->closed()) {
      return Error(Errc::closed, "the handle was closed");
    }
    const auto taken = static_cast<int>(own->value.node()->take_input());
    msg::flush_this_threads_batches();  // of answers to control messages: no wait follows that would send them
    return taken;
  });
}

int weft_topics_sync(weft_topics* topics, int64_t timeout_ms) {
  return call([&]() -> Result<int> {
    const auto own = WEFT_TRY(pin<TopicsObject>(topics));
    const auto nodes = WEFT_TRY(own->value.sync(WEFT_TRY(patience_of(timeout_ms)).deadline));
    return static_cast<int>(std::min<std::size_t>(nodes.size(), INT_MAX));
  });
}
}

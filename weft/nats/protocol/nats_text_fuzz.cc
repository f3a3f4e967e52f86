// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/assert.h"
#include "weft/nats/protocol/credentials.h"
#include "weft/nats/protocol/info.h"
#include "weft/nats/protocol/nkey.h"
#include "weft/nats/protocol/server_list.h"
#include "weft/nats/protocol/subject.h"

// The first byte chooses the reader, the rest is its text. Checked besides the sanitizers: results keep to their
// bounds, and a result that is written and read again is the same.
namespace {

using namespace weft::nats;

void check_info(std::string_view text) {
  const auto info = read_info(text);
  if (info) {
    WEFT_ASSERT(info->max_payload <= kMessageMax && info->nonce.size() <= kNonceMax);
    WEFT_ASSERT(info->connect_urls.size() <= kServersMax);
    auto list = ServerList::make("given", 1);
    WEFT_ASSERT(list.has_value());
    list->learn(info->connect_urls, false);
    WEFT_ASSERT(list->size() <= kServersMax);
    for (std::size_t i = 0; i < list->size(); ++i) {
      WEFT_ASSERT(!list->next().host.empty());
    }
    WEFT_ASSERT(list->turn_is_over());
  }
}

void check_subject(std::string_view text, char separator) {
  const auto names = SubjectNames::make("", separator);
  if (!names) {
    return;
  }
  std::string subject;
  std::string topic;
  if (names->append_subject(text, subject)) {
    WEFT_ASSERT(is_subject(subject));
    WEFT_ASSERT(names->append_topic(subject, topic).has_value() && topic == text);
  }
  topic.clear();
  subject.clear();
  if (names->append_topic(text, topic)) {
    WEFT_ASSERT(names->append_subject(topic, subject).has_value() && subject == text);
  }
}

void check_url(std::string_view text) {
  const auto url = parse_server_url(text);
  if (url) {
    const auto again = parse_server_url(url->text());
    WEFT_ASSERT(again && again->host == url->host && again->port == url->port && again->tls == url->tls);
  }
}

void check_seed(std::string_view text) {
  const auto key = NKey::from_seed(text);
  if (key) {
    const auto again = NKey::from_seed(key->seed());
    WEFT_ASSERT(again && again->public_key() == key->public_key() && is_public_key(key->kind(), key->public_key()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const std::string_view text = weft::as_text(weft::Bytes(data + 1, size - 1));
  switch (data[0] % 6) {
    case 0: check_info(text); break;
    case 1: (void)read_credentials(text); break;
    case 2: check_url(text); break;
    case 3: check_subject(text, '.'); break;
    case 4: check_subject(text, static_cast<char>(data[0])); break;
    default: check_seed(text);
  }
  return 0;
}

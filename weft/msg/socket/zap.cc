// SPDX-License-Identifier: MIT
#include "weft/msg/socket/zap.h"

#include <charconv>
#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/zmtp/command.h"

namespace weft::msg {
namespace {

constexpr std::string_view kName = "zeromq.zap.01";
constexpr std::string_view kEndpoint = "inproc://zeromq.zap.01";
constexpr std::string_view kVersion = "1.0";
constexpr std::size_t kReplyParts = 7;
constexpr std::size_t kRequestIdPart = 2;
constexpr std::size_t kMetadataMax = 64 * 1024;

// 0: no number, or one that no question has.
std::uint64_t parse_zap_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc() && end == text.data() + text.size() ? number : 0;
}

int parse_status(std::string_view text) {
  for (const int status : {200, 300, 400, 500}) {
    if (text == std::to_string(status)) {
      return status;
    }
  }
  return 0;
}

}  // namespace

const char* parse_zap_reply(const std::vector<Message>& parts, std::string_view request_id, ZapReply& reply) {
  if (parts.size() != kReplyParts || !parts[0].empty()) {
    reply.breach = ZapBreach::malformed_reply;
    return "a reply of ZAP has another number of parts";
  }
  if (parts[1].text() != kVersion) {
    reply.breach = ZapBreach::bad_version;
    return "a reply of ZAP has another version";
  }
  if (parts[2].text() != request_id) {
    reply.breach = ZapBreach::bad_request_id;
    return "a reply of ZAP has another request id";
  }
  ZapReply parsed;
  parsed.status = parse_status(parts[3].text());
  if (parsed.status == 0) {
    reply.breach = ZapBreach::invalid_status;
    return "a reply of ZAP has no status";
  }
  parsed.text = parts[4].text();
  parsed.user_id = parts[5].text();
  Bytes metadata = parts[6].bytes();
  if (metadata.size() > kMetadataMax) {
    reply.breach = ZapBreach::invalid_metadata;
    return "a reply of ZAP has too much metadata";
  }
  while (!metadata.empty()) {
    zmtp::Property property;
    if (zmtp::take_property(metadata, property) != ParseStatus::complete) {
      reply.breach = ZapBreach::invalid_metadata;
      return "a reply of ZAP has malformed metadata";
    }
    parsed.metadata.emplace_back(property.name, as_text(property.value));
  }
  reply = std::move(parsed);
  return nullptr;
}

// ZapClient: the DEALER through which one context asks one authenticator, and the questions without an answer.
// Owner: its questions. The context only finds it, so without a question there is no client and no descriptor.
// Affinity: the I/O thread.
// Invariants:
//   1. Each question has a number, its request id. An answer goes to the question that the id names.
//   2. A question whose connection is gone is forgotten. An answer to it, and a second answer, are dropped.
//   3. A reply that breaks the protocol and names no question goes to the oldest one, which waits longest. It admits no
//      peer.
class ZapClient final : public std::enable_shared_from_this<ZapClient>, private rt::Watcher {
 public:
  [[nodiscard]] static Result<std::shared_ptr<ZapClient>> make(ContextCore& context, rt::Loop& loop,
                                                               const std::shared_ptr<SocketCore>& authenticator);
  ZapClient(rt::Loop& loop, std::shared_ptr<SocketCore> socket, std::weak_ptr<SocketCore> authenticator)
      : loop_(loop), socket_(std::move(socket)), authenticator_(std::move(authenticator)) {}
  ZapClient(const ZapClient&) = delete;
  ZapClient& operator=(const ZapClient&) = delete;
  ~ZapClient() {
    if (watch_ != 0) {
      loop_.unwatch(watch_);
    }
    socket_->close();
  }

  // Returns false if another authenticator is bound now, or a question was sent by half.
  [[nodiscard]] bool asks(const std::shared_ptr<SocketCore>& authenticator) const noexcept {
    return !broken_ && authenticator_.lock() == authenticator;
  }
  [[nodiscard]] Result<std::unique_ptr<ZapRequest>> ask(const ZapQuestion& question, ZapRequest::Done done);

 private:
  class Question;

  void handle_event(const sys::PollEvent& event) override;
  void take_replies();
  void handle_reply();
  void fail_questions() noexcept;

  rt::Loop& loop_;
  const std::shared_ptr<SocketCore> socket_;
  const std::weak_ptr<SocketCore> authenticator_;
  rt::Loop::WatchId watch_ = 0;
  std::map<std::uint64_t, Question*> questions_;  // by number: the oldest first
  std::uint64_t last_number_ = 0;
  bool broken_ = false;
  std::vector<Message> parts_;  // of a reply
};

class ZapClient::Question final : public ZapRequest {
 public:
  Question(std::shared_ptr<ZapClient> client, std::uint64_t number, Done done)
      : client_(std::move(client)), number_(number), done_(std::move(done)) {}
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  ~Question() override { client_->questions_.erase(number_); }

  [[nodiscard]] Done take_done() noexcept { return std::move(done_); }

 private:
  const std::shared_ptr<ZapClient> client_;
  const std::uint64_t number_;
  Done done_;
};

Result<std::shared_ptr<ZapClient>> ZapClient::make(ContextCore& context, rt::Loop& loop,
                                                   const std::shared_ptr<SocketCore>& authenticator) {
  auto client = std::make_shared<ZapClient>(loop, context.make_own_socket(SocketType::dealer), authenticator);
  SocketCore& socket = *client->socket_;
  WEFT_TRY(socket.set_options([](Options& options) { return set_option(options, option::linger, Duration(0)); }));
  WEFT_TRY(socket.connect(kEndpoint));
  const int fd = WEFT_TRY(socket.descriptor());
  client->watch_ = WEFT_TRY(loop.watch(fd, sys::Interest::readable, false, client.get()));
  return client;
}

Result<std::unique_ptr<ZapRequest>> ZapClient::ask(const ZapQuestion& question, ZapRequest::Done done) {
  const auto authenticator = authenticator_.lock();
  if (questions_.size() >= kZapQuestionsMax ||
      (authenticator != nullptr && authenticator->statistics().queued_in >= kZapQuestionsMax)) {
    return Error(Errc::resource_exhausted, "too many handshakes wait for the authenticator");
  }
  const std::uint64_t number = ++last_number_;
  const std::string id = std::to_string(number);
  std::vector<std::string_view> parts = {
      {}, kVersion, id, question.domain, question.address, question.identity, question.mechanism};
  parts.insert(parts.end(), question.credentials.begin(), question.credentials.end());
  auto request = std::make_unique<Question>(shared_from_this(), number, std::move(done));
  questions_.emplace(number, request.get());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Outbound part{as_bytes(parts[i]), nullptr, i + 1 < parts.size()};
    if (const auto sent = socket_->send(part, Timeout::none()); !sent) {
      broken_ = i > 0;  // the next question would continue this one
      return sent.error() == Errc::would_block ? Error(Errc::resource_exhausted, "the authenticator's queue is full")
                                               : sent.error();
    }
  }
  return std::unique_ptr<ZapRequest>(std::move(request));
}

void ZapClient::handle_event(const sys::PollEvent& /*event*/) {
  const auto keep = shared_from_this();  // an answer may end the last question
  try {
    take_replies();
  } catch (const std::bad_alloc&) {
    fail_questions();
  }
}

// Without memory for a reply no question can be separated from another: all of them fail, and the next asks by a new
// client.
void ZapClient::fail_questions() noexcept {
  broken_ = true;
  ZapReply reply;
  reply.status = zmtp::kCannotTell;
  while (!questions_.empty()) {
    const auto first = questions_.begin();
    const ZapRequest::Done done = first->second->take_done();
    questions_.erase(first);
    done(reply);
  }
}

void ZapClient::take_replies() {
  while (socket_->readiness({true, false}).input) {
    Message message;
    Inbound part{&message, {}};
    if (!socket_->recv(part, Timeout::none())) {
      return;
    }
    const bool more = part.more;
    if (parts_.size() <= kReplyParts) {  // the eighth part makes the reply malformed; drop the rest
      parts_.push_back(std::move(message));
    }
    if (!more) {
      handle_reply();
    }
  }
}

void ZapClient::handle_reply() {
  const std::vector<Message> parts = std::exchange(parts_, {});
  const std::uint64_t number = parts.size() > kRequestIdPart ? parse_zap_number(parts[kRequestIdPart].text()) : 0;
  auto found = questions_.find(number);
  if (found == questions_.end()) {
    const bool known = number != 0 && number <= last_number_;
    if (known || questions_.empty()) {
      return;
    }
    found = questions_.begin();
  }
  ZapReply reply;
  (void)parse_zap_reply(parts, std::to_string(found->first), reply);
  const ZapRequest::Done done = found->second->take_done();
  questions_.erase(found);
  done(reply);
}

Result<std::unique_ptr<ZapRequest>> ask_zap(ContextCore& context, rt::Loop& loop, const ZapQuestion& question,
                                            ZapRequest::Done done) {
  const auto authenticator = context.inproc_binder(std::string(kName));
  if (authenticator == nullptr) {
    return std::unique_ptr<ZapRequest>();
  }
  std::shared_ptr<ZapClient> client = context.zap_client().lock();
  if (client == nullptr || !client->asks(authenticator)) {
    client = WEFT_TRY(ZapClient::make(context, loop, authenticator));
    context.zap_client() = client;
  }
  return client->ask(question, std::move(done));
}

}  // namespace weft::msg

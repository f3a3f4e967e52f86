// SPDX-License-Identifier: MIT
#include "weft/msg/socket/zap.h"

#include <new>
#include <utility>

#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/zmtp/command.h"

namespace weft::msg {
namespace {

constexpr std::string_view kName = "zeromq.zap.01";
constexpr std::string_view kEndpoint = "inproc://zeromq.zap.01";
constexpr std::string_view kVersion = "1.0";
constexpr std::string_view kRequestId = "1";  // each question has its own socket: one id is enough
constexpr std::size_t kReplyParts = 7;
constexpr std::size_t kMetadataMax = 64 * 1024;

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
    if (zmtp::take_property(metadata, property) != zmtp::ParseStatus::complete) {
      reply.breach = ZapBreach::invalid_metadata;
      return "a reply of ZAP has malformed metadata";
    }
    parsed.metadata.emplace_back(property.name, as_text(property.value));
  }
  reply = std::move(parsed);
  return nullptr;
}

namespace {

class InprocZapRequest final : public ZapRequest, private rt::Watcher {
 public:
  InprocZapRequest(rt::Loop& loop, std::shared_ptr<SocketCore> socket, Done done)
      : loop_(loop), socket_(std::move(socket)), done_(std::move(done)) {}
  InprocZapRequest(const InprocZapRequest&) = delete;
  InprocZapRequest& operator=(const InprocZapRequest&) = delete;
  ~InprocZapRequest() override {
    if (watch_ != 0) {
      loop_.unwatch(watch_);
    }
    socket_->close();
  }
  [[nodiscard]] Result<void> begin(const ZapQuestion& question);

 private:
  void handle_event(const sys::PollEvent& event) override;
  void take_reply();

  rt::Loop& loop_;
  const std::shared_ptr<SocketCore> socket_;
  Done done_;
  rt::Loop::WatchId watch_ = 0;
  std::vector<Message> parts_;
};

Result<void> InprocZapRequest::begin(const ZapQuestion& question) {
  WEFT_TRY(socket_->set_options([](Options& options) { return set_option(options, option::linger, Duration(0)); }));
  WEFT_TRY(socket_->connect(kEndpoint));
  const int fd = WEFT_TRY(socket_->descriptor());
  watch_ = WEFT_TRY(loop_.watch(fd, sys::Interest::readable, false, this));
  std::vector<std::string_view> parts = {
      {}, kVersion, kRequestId, question.domain, question.address, question.identity, question.mechanism};
  parts.insert(parts.end(), question.credentials.begin(), question.credentials.end());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Outbound part{as_bytes(parts[i]), nullptr, i + 1 < parts.size()};
    WEFT_TRY(socket_->send(part, Timeout::none()));
  }
  return {};
}

void InprocZapRequest::handle_event(const sys::PollEvent& /*event*/) {
  try {
    take_reply();
  } catch (const std::bad_alloc&) {
    ZapReply reply;
    reply.status = zmtp::kCannotTell;
    const Done done = std::move(done_);
    loop_.unwatch(std::exchange(watch_, 0));
    done(reply);
  }
}

void InprocZapRequest::take_reply() {
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
      ZapReply reply;
      (void)parse_zap_reply(parts_, kRequestId, reply);
      const Done done = std::move(done_);
      loop_.unwatch(std::exchange(watch_, 0));
      done(reply);
      return;
    }
  }
}

}  // namespace

Result<std::unique_ptr<ZapRequest>> ask_zap(ContextCore& context, rt::Loop& loop, const ZapQuestion& question,
                                            ZapRequest::Done done) {
  if (!context.is_inproc_bound(std::string(kName))) {
    return std::unique_ptr<ZapRequest>();
  }
  auto request = std::make_unique<InprocZapRequest>(loop, context.make_own_socket(SocketType::dealer), std::move(done));
  WEFT_TRY(request->begin(question));
  return std::unique_ptr<ZapRequest>(std::move(request));
}

}  // namespace weft::msg

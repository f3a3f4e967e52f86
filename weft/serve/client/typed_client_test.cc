// SPDX-License-Identifier: MIT
#include "weft/serve/client/typed_client.h"

#include <string>

#include "weft/serve/client/test_serve_client.h"
#include "weft/serve/dispatch/dispatcher.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SCHEMAS
#include "weft/serve/schemas/echo_generated.h"
#include "weft/serve/schemas/error_response_generated.h"

namespace weft::serve {
namespace {

using test::HeaderClient;
using test::HeaderSession;
using test::in_long;
using test::soon;

constexpr std::uint32_t kEcho = 1;
constexpr std::uint32_t kWrongType = 2;
constexpr std::uint32_t kTooShort = 3;
constexpr std::uint32_t kMute = 4;
constexpr std::uint32_t kBadErrorFrame = 5;

flatbuffers::DetachedBuffer echo_message(std::string_view text) {
  flatbuffers::FlatBufferBuilder builder;
  const auto data = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  schema::FinishEchoBuffer(builder, schema::CreateEcho(builder, data));
  return builder.Release();
}

class TypedClientTest : public test::ClientFixture {
 protected:
  void SetUp() override {
    ClientFixture::SetUp();
    const auto echo = [](HeaderSession& session, const schema::Echo& message) -> Result<void> {
      const std::string_view text(reinterpret_cast<const char*>(message.data()->data()), message.data()->size());
      if (text == "refuse me") {
        return Error(Errc::invalid_argument, "the word is too long");
      }
      const auto answer = echo_message(text);
      return session.send({kEcho, 0}, Bytes(answer.data(), answer.size()));
    };
    ASSERT_TRUE(route<schema::Echo>(dispatcher_, kEcho, schema::EchoIdentifier(), echo));
    ASSERT_TRUE(dispatcher_.on(kWrongType, [](HeaderSession& session, const HeaderCodec::Frame& frame) {
      flatbuffers::FlatBufferBuilder builder;
      schema::FinishErrorResponseBuffer(builder, schema::CreateErrorResponse(builder, 1));
      return session.send(frame.header, Bytes(builder.GetBufferPointer(), builder.GetSize()));
    }));
    ASSERT_TRUE(dispatcher_.on(kTooShort, [](HeaderSession& session, const HeaderCodec::Frame& frame) {
      return session.send(frame.header, as_bytes("ECHO"));
    }));
    ASSERT_TRUE(dispatcher_.on(kMute, [](HeaderSession&, const HeaderCodec::Frame&) {}));
    ASSERT_TRUE(dispatcher_.on(kBadErrorFrame, [](HeaderSession& session, const HeaderCodec::Frame& frame) {
      return session.send({frame.header.id, kFlagError}, as_bytes("?"));
    }));
    script_.on_frame = [this](HeaderSession& session, const HeaderCodec::Frame& frame) {
      dispatcher_.dispatch(session, frame);
    };
  }

  Dispatcher<HeaderSession> dispatcher_;  // of the only core, which has the session
};

rt::Task<Error> outcome(HeaderClient* client, std::uint32_t id, std::string_view identifier, Instant deadline) {
  const auto reply = co_await call<schema::Echo>(client, id, echo_message("x"), identifier, deadline);
  co_return reply ? Error() : reply.error();
}

rt::Task<void> call_everything(std::string endpoint) {
  const auto client = test::open_client(endpoint);
  EXPECT_TRUE(co_await client->connected());
  const auto reply = co_await call<schema::Echo>(client.get(), kEcho, echo_message("hello"), schema::EchoIdentifier());
  EXPECT_TRUE(reply);
  if (reply) {
    const VerifiedMessage<schema::Echo>& message = *reply;
    EXPECT_EQ(std::string(message->data()->begin(), message->data()->end()), "hello");
  }
  const auto refused =
      co_await call<schema::Echo>(client.get(), kEcho, echo_message("refuse me"), schema::EchoIdentifier());
  EXPECT_EQ(refused.error(), Error(kServiceDomain, static_cast<std::uint16_t>(Errc::invalid_argument)));
  EXPECT_STREQ(refused.error().text(), "the word is too long");
  const Error unknown = co_await outcome(client.get(), 99, "ECHO", kNever);
  EXPECT_EQ(unknown, frame_error(ErrorCode::unknown_message, ""));
  const Error wrong = co_await outcome(client.get(), kWrongType, "ECHO", kNever);
  EXPECT_EQ(wrong, Errc::protocol_error);
  const Error brief = co_await outcome(client.get(), kTooShort, "ECHO", kNever);
  EXPECT_EQ(brief, Errc::protocol_error);
  const Error bad_frame = co_await outcome(client.get(), kBadErrorFrame, "ECHO", kNever);
  EXPECT_EQ(bad_frame, Errc::protocol_error);
  const Error mute = co_await outcome(client.get(), kMute, "ECHO", soon());
  EXPECT_EQ(mute, Errc::timed_out);
  const Error no_name = co_await outcome(client.get(), kEcho, "ECHOES", kNever);
  EXPECT_EQ(no_name, Errc::invalid_argument);
}
TEST_F(TypedClientTest, RepliesAreVerifiedAndErrorFramesAreErrors) { run(call_everything(listen())); }

struct NumberedService {
  Dispatcher<SessionOf<NumberedCodec>>* dispatcher;
  void on_frame(SessionOf<NumberedCodec>& session, const NumberedCodec::Frame& frame) {
    dispatcher->dispatch(session, frame);
  }
};
rt::Task<void> call_by_number(std::string endpoint) {
  const auto client = test::open_client<serve::Client<>>(endpoint);
  EXPECT_TRUE(co_await client->connected());
  for (const std::uint32_t id : {kEcho, kMute}) {
    const auto reply = co_await call<schema::Echo>(client.get(), id, echo_message("hello"), schema::EchoIdentifier());
    EXPECT_TRUE(reply) << id << reply.error().message();
  }
}
TEST_F(TypedClientTest, ATypedHandlerThatTakesTheHeaderAnswersByNumber) {
  using Session = SessionOf<NumberedCodec>;
  Dispatcher<Session> dispatcher;
  ASSERT_TRUE(route<schema::Echo>(dispatcher, kEcho, schema::EchoIdentifier(),
                                  [](Session& session, const schema::Echo&, const FrameHeader& header) {
                                    const auto answer = echo_message("hello");
                                    return session.send(header, Bytes(answer.data(), answer.size()));
                                  }));
  ASSERT_TRUE(route<schema::Echo>(
      dispatcher, kMute, schema::EchoIdentifier(),
      [](Session& session, const schema::Echo&, const FrameHeader& header) -> rt::Task<Result<void>> {
        const auto slept = co_await rt::yield();
        EXPECT_TRUE(slept);
        const auto answer = echo_message("hello");
        co_return session.send(header, Bytes(answer.data(), answer.size()));
      }));
  make_server();
  const auto bound =
      server_->listen<NumberedCodec>("tcp://127.0.0.1:0", {}, [&] { return NumberedService{&dispatcher}; });
  ASSERT_TRUE(bound);
  run(call_by_number(*bound));
  (void)stop_now();  // before the dispatcher ends
}

}  // namespace
}  // namespace weft::serve
#endif

// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "weft/rt/loop/activity.h"
#include "weft/rt/loop/type_name.h"
#include "weft/serve/session/service_checks.h"
#include "weft/serve/session/session.h"

namespace weft::serve {

// The functions that a listener runs on one core for its codec and its service.
struct SessionOps {
  const void* codec_tag;
  Session* (*make)(void* place, Shard& shard, const ServiceSlot& slot);
  void (*destroy)(Session& session) noexcept;
  void (*opened)(Session& session);
  DecodeResult (*frames)(Session& session, Bytes input);  // decodes until the session takes no more frames
  void (*ended)(Session& session);                        // null if the service has no on_end()
  void (*closed)(Session& session, const Error& why);
  const rt::ActivityName* coroutine;   // the name of the service's coroutines
  bool numbers_requests;               // of the codec, see request_number.h
  void (*draining)(Session& session);  // null if the service has no on_drain(session)
  void (*stopping)(void* service);     // null if the service has no on_drain()
  // null if the codec has no farewell
  std::size_t (*farewell)(Session& session, EndCause why, std::span<std::uint8_t, kFarewellMax> out);
  bool (*in_body)(const Session& session);     // null if the codec does not separate a frame's head and body
  bool (*in_message)(const Session& session);  // null if the codec has no messages of several frames
  void (*writable)(Session& session);          // null if the service has no on_writable()
  // Null unless MovesBetweenCores<Codec>: otherwise its sessions stay. keep_codec() throws std::bad_alloc.
  std::shared_ptr<const void> (*keep_codec)(const Session& session);
  void (*put_codec)(Session& session, const void* kept) noexcept;
};

// ServiceSlot: a listener on one core: its functions and their data.
struct ServiceSlot {
  const SessionOps* ops = nullptr;
  void* service = nullptr;      // the service object of this core
  const void* codec = nullptr;  // each session copies its codec from here
  SessionLimits limits;
  bool layered = false;              // the streams are more than sockets: they have a state()
  mutable std::size_t sessions = 0;  // that refer to it
  std::size_t port = SessionMover::kNoPort;
};

template <FrameCodec Codec>
class SendWait;

inline constexpr std::size_t kSessionSize = 624;  // bytes; bound of a session with its codec

// SessionOf: a session whose frames have a codec. Services receive this type.
template <FrameCodec Codec>
class SessionOf final : public Session {
 public:
  // Errors: closed (the session is not open); resource_exhausted (the policy refuses the frame, or the memory budget is
  // spent); those of the codec's encode_header(). After an error nothing was queued.
  Result<void> send(const typename Codec::Header& header, Bytes body) {
    if constexpr (PacksBodies<Codec>) {
      if (is_here() && is_open() && codec_.packs(header, body)) {
        return send_packed(header, body);
      }
    }
    return send_body(header, body);
  }
  // The same for a frame of state, which a newer one may replace in the queue, see SlowConsumer::conflate_state.
  Result<void> send_state(const typename Codec::Header& header, Bytes body) {
    std::array<std::uint8_t, Codec::kHeaderMax> front;
    const std::size_t size = WEFT_TRY(codec_.encode_header(header, body, std::span(front)));
    return send_parts({Bytes(front).first(size), body, codec_.trailer()}, FrameKind::state);
  }
  // The same for the state of one of many things, such as the price of an instrument: the frame takes the place of the
  // queued frame with its key at once, whatever the SlowConsumer and however full the queue (counted, conflated). So
  // each key has one frame in the queue, and a key that changes all the time leaves as soon as the others: a frame that
  // went to the end with each change might never leave. All other frames stay, in their order. The newer frame leaves
  // before frames that were sent between the older one and it. An older frame of which a byte was written stays, too.
  // The policy applies to a frame without an older one in a full queue, or with one that is smaller: as to state.
  // Cost: amortized O(1), however much is queued: a look-up in a hash table, a pooled block for the frame, a copy.
  Result<void> send_state(const typename Codec::Header& header, Bytes body, FrameKey key) {
    std::array<std::uint8_t, Codec::kHeaderMax> front;
    const std::size_t size = WEFT_TRY(codec_.encode_header(header, body, std::span(front)));
    return send_keyed({Bytes(front).first(size), body, codec_.trailer()}, key);
  }
  // `co_await session.send_wait(header, body, deadline)` -> Result<void>: send() when there is room, see writable().
  // The frames of such waits leave in the order of the waits. The body stays valid until the await ends. Errors: those
  // of RoomWait, then the frame was not sent. With `closed` the session may be gone, if the task is not its own.
  [[nodiscard]] SendWait<Codec> send_wait(const typename Codec::Header& header, Bytes body,
                                          Instant deadline = kNever) noexcept {
    return SendWait<Codec>(*this, header, body, deadline);
  }
  [[nodiscard]] const Codec& codec() const noexcept { return codec_; }
  [[nodiscard]] Codec& codec() noexcept { return codec_; }

 private:
  template <typename C, typename Service>
  friend struct ServiceCalls;

  SessionOf(Shard& shard, const ServiceSlot& slot) noexcept
      : Session(shard, slot), codec_(*static_cast<const Codec*>(slot.codec)) {}
  ~SessionOf() override = default;

  Result<void> send_body(const typename Codec::Header& header, Bytes body) {
    const Bytes back = codec_.trailer();
    std::uint8_t* const place = place_for(Codec::kHeaderMax + body.size() + back.size());
    if (place == nullptr) [[unlikely]] {
      return send_slowly(header, body, back);
    }
    const std::size_t front = WEFT_TRY(
        codec_.encode_header(header, body, std::span<std::uint8_t, Codec::kHeaderMax>(place, Codec::kHeaderMax)));
    copy_bytes(place + front, body);
    copy_bytes(place + front + body.size(), back);
    commit(front + body.size() + back.size());
    return {};
  }
  [[gnu::noinline]] Result<void> send_packed(const typename Codec::Header& header, Bytes body) {
    const Bytes packed = WEFT_TRY(codec_.pack(header, body));
    Result<void> sent = send_body(header, packed);
    codec_.end_pack(sent.has_value());
    return sent;
  }
  [[gnu::noinline]] Result<void> send_slowly(const typename Codec::Header& header, Bytes body, Bytes back) {
    std::array<std::uint8_t, Codec::kHeaderMax> front;
    const std::size_t size = WEFT_TRY(codec_.encode_header(header, body, std::span(front)));
    return send_parts({Bytes(front).first(size), body, back});
  }

  Codec codec_;
};

// The awaiter of SessionOf::send_wait().
template <FrameCodec Codec>
class [[nodiscard]] SendWait final : public RoomWait {
 public:
  SendWait(SessionOf<Codec>& session, const typename Codec::Header& header, Bytes body, Instant deadline) noexcept
      : RoomWait(session, deadline, send), header_(header), body_(body) {}

 private:
  static Result<void> send(RoomWait& self, Session& session) {
    const auto& own = static_cast<SendWait&>(self);
    return static_cast<SessionOf<Codec>&>(session).send(own.header_, own.body_);
  }

  const typename Codec::Header header_;
  const Bytes body_;
};

// Returns the session with its send(); null if its codec is another one.
template <FrameCodec Codec>
[[nodiscard]] SessionOf<Codec>* session_of(Session& session) noexcept {
  return session.codec_tag() == codec_tag<Codec>() ? static_cast<SessionOf<Codec>*>(&session) : nullptr;
}

// A service is a type with any of these functions. The session skips a missing function:
//   void on_open(SessionOf<Codec>&)                         before the first frame; with TLS after the handshake
//   void on_frame(SessionOf<Codec>&, const Codec::Frame&)   the frame is valid until on_frame() returns
//   rt::Task<> on_frame(SessionOf<Codec>&, const Codec::Frame&)   instead a coroutine (session.h): the frame is a copy
//                                                           that lives until the coroutine has ended
//   void on_end(SessionOf<Codec>&)                          the peer has ended its stream. Without on_end() the session
//                                                           is closed then; with it the service closes the session
//   void on_writable(SessionOf<Codec>&)                     the queue was full (has_room()), and half of it is written
//   void on_close(SessionOf<Codec>&, const Error& why)      the last call; session.reason() is the counter
//   void on_drain()                                         stop() was called; once on each core
//   void on_drain(SessionOf<Codec>&)                        then, for each session, before it handles its last frames:
//                                                           for a farewell, or to end long waits
// A service has one object for each core. All its calls run in that core's thread, one at a time. An exception
// from it ends the session. A function that has one of these names and cannot be called does not compile.
template <typename Codec, typename Service>
struct ServiceCalls {
  using Typed = SessionOf<Codec>;
  using Frame = typename Codec::Frame;
  static_assert(detail::check_service<Service, Typed, Frame>());

  static constexpr bool kHasEnd = requires(Service service, Typed& session) { service.on_end(session); };
  static constexpr bool kHasSessionDrain = requires(Service service, Typed& session) { service.on_drain(session); };
  static constexpr bool kHasDrain = requires(Service service) { service.on_drain(); };
  static constexpr bool kHasWritable = requires(Service service, Typed& session) { service.on_writable(session); };

  static constexpr rt::ActivityName kOpen{rt::type_name<Service>(), "on_open"};
  static constexpr rt::ActivityName kFrame{rt::type_name<Service>(), "on_frame"};
  static constexpr rt::ActivityName kEnd{rt::type_name<Service>(), "on_end"};
  static constexpr rt::ActivityName kWritable{rt::type_name<Service>(), "on_writable"};
  static constexpr rt::ActivityName kClose{rt::type_name<Service>(), "on_close"};
  static constexpr rt::ActivityName kDrain{rt::type_name<Service>(), "on_drain"};
  static constexpr rt::ActivityName kCoroutine{rt::type_name<Service>(), "coroutine"};

  static Session* make(void* place, Shard& shard, const ServiceSlot& slot) {
    static_assert(sizeof(Typed) <= kSessionSize && alignof(Typed) <= alignof(std::max_align_t));
    ++slot.sessions;
    return ::new (place) Typed(shard, slot);
  }
  static void destroy(Session& session) noexcept {
    --session.slot().sessions;
    typed(session).~Typed();
  }

  static void opened(Session& session) {
    if constexpr (requires(Service service, Typed& typed_session) { service.on_open(typed_session); }) {
      const auto named = name(session, kOpen);
      service(session).on_open(typed(session));
    }
  }
  static DecodeResult frames(Session& session, Bytes input) {
    Typed& own = typed(session);
    const auto named = name(session, kFrame);
    return decode_all(own.codec_, input, [&own](const Frame& frame) {
      bool counts = true;
      if constexpr (requires { frame.header.is_message(); }) {
        counts = frame.header.is_message();
      }
      if (counts) {
        own.note_frame();
      }
      if constexpr (requires(Service target, Typed& typed_session) { target.on_frame(typed_session, frame); }) {
        if constexpr (HandlerTask<decltype(service(own).on_frame(own, frame))>::kIs) {
          start(own, frame);
        } else {
          service(own).on_frame(own, frame);
        }
      }
      return own.wants_frames();
    });
  }
  static void ended(Session& session) {
    if constexpr (kHasEnd) {
      const auto named = name(session, kEnd);
      service(session).on_end(typed(session));
    }
  }
  static void writable(Session& session) {
    if constexpr (kHasWritable) {
      const auto named = name(session, kWritable);
      service(session).on_writable(typed(session));
    }
  }
  static void closed(Session& session, const Error& why) {
    if constexpr (requires(Service target, Typed& typed_session) { target.on_close(typed_session, why); }) {
      const auto named = name(session, kClose);
      service(session).on_close(typed(session), why);
    }
  }

  static void draining(Session& session) {
    if constexpr (kHasSessionDrain) {
      const auto named = name(session, kDrain);
      service(session).on_drain(typed(session));
    }
  }
  static void stopping(void* service) {
    if constexpr (kHasDrain) {
      static_cast<Service*>(service)->on_drain();
    }
  }

  static constexpr SessionOps ops() noexcept {
    return {codec_tag<Codec>(),
            &make,
            &destroy,
            &opened,
            &frames,
            kHasEnd ? &ended : nullptr,
            &closed,
            &kCoroutine,
            kNumbersRequests<Codec>,
            kHasSessionDrain ? &draining : nullptr,
            kHasDrain ? &stopping : nullptr,
            farewell_of(),
            in_body_of(),
            in_message_of(),
            kHasWritable ? &writable : nullptr,
            keep_codec_of(),
            put_codec_of()};
  }

 private:
  static constexpr auto farewell_of() noexcept -> decltype(SessionOps::farewell) {
    if constexpr (HasFarewell<Codec>) {
      return [](Session& session, EndCause why, std::span<std::uint8_t, kFarewellMax> out) {
        return typed(session).codec_.farewell(why, out);
      };
    } else {
      return nullptr;
    }
  }
  static constexpr auto in_body_of() noexcept -> decltype(SessionOps::in_body) {
    if constexpr (TellsParts<Codec>) {
      return [](const Session& session) { return static_cast<const Typed&>(session).codec_.in_body(); };
    } else {
      return nullptr;
    }
  }
  static constexpr auto in_message_of() noexcept -> decltype(SessionOps::in_message) {
    if constexpr (HasMessages<Codec>) {
      return [](const Session& session) { return static_cast<const Typed&>(session).codec_.in_message(); };
    } else {
      return nullptr;
    }
  }
  static constexpr auto keep_codec_of() noexcept -> decltype(SessionOps::keep_codec) {
    if constexpr (MovesBetweenCores<Codec>) {
      return [](const Session& session) -> std::shared_ptr<const void> {
        return std::make_shared<const Codec>(static_cast<const Typed&>(session).codec_);
      };
    } else {
      return nullptr;
    }
  }
  static constexpr auto put_codec_of() noexcept -> decltype(SessionOps::put_codec) {
    if constexpr (MovesBetweenCores<Codec>) {
      return [](Session& session, const void* kept) noexcept {
        std::construct_at(&typed(session).codec_, *static_cast<const Codec*>(kept));
      };
    } else {
      return nullptr;
    }
  }
  struct EndsSession {
    Typed* session;
    void operator()(const Error& outcome, bool /*cancelled*/, const Frame& /*frame*/) const noexcept {
      if (!(outcome == Errc::ok)) {
        session->abort(CloseReason::service_failed, outcome);
      }
    }
  };
  static void start(Typed& session, const Frame& frame) {
    const auto handle = [&session](const Frame& kept) { return service(session).on_frame(session, kept); };
    if (const auto started = start_with_frame(session, frame, handle, EndsSession{&session}); !started) {
      session.abort(CloseReason::out_of_memory, started.error());
    }
  }
  static rt::InActivity name(Session& session, const rt::ActivityName& call) noexcept {
    return {session.activity(), call, session.id().value};
  }
  static Typed& typed(Session& session) noexcept { return static_cast<Typed&>(session); }
  static Service& service(Session& session) noexcept { return *static_cast<Service*>(session.slot_.service); }
};

}  // namespace weft::serve

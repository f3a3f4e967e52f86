// SPDX-License-Identifier: MIT
#include "weft/serve/session/session_clock.h"

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

SessionLimits limits() {
  SessionLimits limits;
  limits.handshake_timeout = seconds(10);
  limits.idle_timeout = seconds(60);
  return limits;
}

CloseReason reason_at(const SessionClock& clock, const SessionLimits& limits, SessionState state, Instant now,
                      bool owes = false) {
  const auto cause = clock.passed(limits, state, owes, now);
  return cause ? cause->reason : CloseReason::service;
}

TEST(SessionClockTest, TheFirstFrameEndsTheHandshakeDeadline) {
  SessionClock clock;
  clock.start(kStart);
  clock.note_begun();
  EXPECT_EQ(clock.next_deadline(limits(), SessionState::open, false), kStart + seconds(10));
  EXPECT_FALSE(clock.passed(limits(), SessionState::open, false, kStart + seconds(9)));
  EXPECT_EQ(reason_at(clock, limits(), SessionState::open, kStart + seconds(10)), CloseReason::handshake_timeout);
  clock.note_frame();
  EXPECT_TRUE(clock.begun());
  EXPECT_EQ(clock.next_deadline(limits(), SessionState::open, false), kStart + seconds(60));
  EXPECT_EQ(reason_at(clock, limits(), SessionState::open, kStart + seconds(60)), CloseReason::idle_timeout);
}

TEST(SessionClockTest, TheHandshakeDeadlineCountsFromAnEarlierAccept) {
  SessionClock clock;
  clock.start(kStart + seconds(4));
  clock.note_accepted(kStart);
  EXPECT_EQ(clock.next_deadline(limits(), SessionState::open, false), kStart + seconds(10)) << "in TLS";
  clock.note_begun();
  EXPECT_EQ(clock.next_deadline(limits(), SessionState::open, false), kStart + seconds(10));
  EXPECT_EQ(reason_at(clock, limits(), SessionState::open, kStart + seconds(10)), CloseReason::handshake_timeout);
  clock.note_frame();
  EXPECT_EQ(clock.next_deadline(limits(), SessionState::open, false), kStart + seconds(64)) << "idle from its start";
}

TEST(SessionClockTest, EachReadOrWriteMovesTheIdleDeadline) {
  SessionClock clock;
  clock.start(kStart);
  clock.note_begun();
  clock.note_frame();
  clock.note_active(kStart + seconds(50));
  EXPECT_FALSE(clock.passed(limits(), SessionState::open, false, kStart + seconds(109)));
  EXPECT_EQ(reason_at(clock, limits(), SessionState::draining, kStart + seconds(110)), CloseReason::idle_timeout);
}

TEST(SessionClockTest, WithoutAHandshakeTimeoutTlsAloneIsBounded) {
  SessionLimits unbounded = limits();
  unbounded.handshake_timeout = Duration(-1);
  SessionClock clock;
  clock.start(kStart);
  EXPECT_FALSE(clock.begun());
  EXPECT_EQ(clock.next_deadline(unbounded, SessionState::open, false), kStart + SessionClock::kTlsHandshake);
  clock.note_begun();
  EXPECT_EQ(clock.next_deadline(unbounded, SessionState::open, false), kStart + seconds(60));
}

TEST(SessionClockTest, AnOwedReplyHasABoundOfItsOwn) {
  SessionLimits with_reply = limits();
  with_reply.reply_timeout = seconds(600);
  SessionClock clock;
  clock.start(kStart);
  clock.note_begun();
  clock.note_frame();
  EXPECT_EQ(clock.next_deadline(with_reply, SessionState::open, true), kStart + seconds(600));
  EXPECT_EQ(reason_at(clock, with_reply, SessionState::open, kStart + seconds(599), true), CloseReason::service);
  EXPECT_EQ(reason_at(clock, with_reply, SessionState::open, kStart + seconds(600), true), CloseReason::reply_timeout);
  EXPECT_EQ(reason_at(clock, with_reply, SessionState::open, kStart + seconds(60)), CloseReason::idle_timeout);
}

TEST(SessionClockTest, AHalfReceivedFrameHasADeadline) {
  SessionClock clock;
  clock.start(kStart);
  clock.note_begun();
  clock.note_frame();
  clock.finish_by(kStart + seconds(20));
  EXPECT_EQ(clock.next_deadline(limits(), SessionState::draining, true), kStart + seconds(20));
  EXPECT_EQ(reason_at(clock, limits(), SessionState::open, kStart + seconds(20)), CloseReason::frame_timeout);
  clock.finish_by(kNever);
  EXPECT_EQ(reason_at(clock, limits(), SessionState::open, kStart + seconds(20)), CloseReason::service);
}

TEST(SessionClockTest, AClosingSessionHasItsCloseDeadlineAlone) {
  SessionClock clock;
  clock.start(kStart);
  EXPECT_EQ(clock.next_deadline(limits(), SessionState::closing, false), kNever);
  clock.finish_by(kStart + seconds(200));
  EXPECT_FALSE(clock.passed(limits(), SessionState::closing, false, kStart + seconds(199)));
  EXPECT_EQ(reason_at(clock, limits(), SessionState::closing, kStart + seconds(200)), CloseReason::close_timeout);
}

TEST(SessionClockTest, ATimerMovesToAnEarlierDeadlineAndStaysAtALaterOne) {
  rt::TimerWheel wheel(kStart);
  SessionClock clock;
  int fired = 0;
  const rt::TimerCallback count{[](void* self) { ++*static_cast<int*>(self); }, &fired};
  ASSERT_TRUE(clock.arm(wheel, kNever, count));
  EXPECT_EQ(wheel.size(), 0u);
  ASSERT_TRUE(clock.arm(wheel, kStart + seconds(30), count));
  ASSERT_TRUE(clock.arm(wheel, kStart + seconds(50), count));
  ASSERT_TRUE(clock.arm(wheel, kStart + seconds(10), count));
  EXPECT_EQ(wheel.size(), 1u);
  wheel.advance(kStart + seconds(11), 100);
  EXPECT_EQ(fired, 1);
  clock.note_fired();
  ASSERT_TRUE(clock.arm(wheel, kStart + seconds(50), count));
  clock.cancel(wheel);
  wheel.advance(kStart + seconds(60), 100);
  EXPECT_EQ(fired, 1) << "the timer was cancelled";
}

}  // namespace
}  // namespace weft::serve

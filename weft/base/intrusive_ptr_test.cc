// SPDX-License-Identifier: MIT
#include "weft/base/intrusive_ptr.h"

#include <set>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

struct Session : Counted<Session> {
  explicit Session(int& ended) : ends(&ended) {}
  virtual ~Session() { ++*ends; }
  int* ends;
};
struct SecureSession final : Session {
  using Session::Session;
};
using SessionPtr = IntrusivePtr<Session>;

static_assert(sizeof(SessionPtr) == sizeof(void*));
static_assert(std::is_nothrow_move_constructible_v<SessionPtr> && std::is_nothrow_copy_constructible_v<SessionPtr>);
static_assert(!std::is_convertible_v<Session*, SessionPtr>);  // adopt or retain must be written out
static_assert(std::is_convertible_v<IntrusivePtr<SecureSession>, SessionPtr>);
static_assert(!std::is_constructible_v<IntrusivePtr<SecureSession>, SessionPtr>);

TEST(IntrusivePtr, TheLastReferenceEndsTheObject) {
  int ended = 0;
  SessionPtr first = make_intrusive<Session>(ended);
  EXPECT_TRUE(first->sole_owner());
  {
    const SessionPtr second = first;
    EXPECT_FALSE(first->sole_owner());
  }
  EXPECT_TRUE(first->sole_owner());
  first = nullptr;
  EXPECT_EQ(ended, 1);
  EXPECT_FALSE(first);
}

TEST(IntrusivePtr, AMoveLeavesNullAndCountsNothing) {
  int ended = 0;
  SessionPtr first = make_intrusive<Session>(ended);
  SessionPtr second = std::move(first);
  EXPECT_EQ(first, nullptr);  // NOLINT(bugprone-use-after-move): that is the contract
  EXPECT_TRUE(second->sole_owner());
  second = std::move(second);
  EXPECT_TRUE(second);
  const SessionPtr& alias = second;
  second = alias;
  EXPECT_TRUE(second->sole_owner());
  EXPECT_EQ(ended, 0);
}

TEST(IntrusivePtr, AssignmentDropsWhatWasThere) {
  int ended_a = 0;
  int ended_b = 0;
  SessionPtr a = make_intrusive<Session>(ended_a);
  SessionPtr b = make_intrusive<Session>(ended_b);
  swap(a, b);
  EXPECT_EQ(ended_a + ended_b, 0);
  b = a;
  EXPECT_EQ(ended_a, 1);
  EXPECT_EQ(a, b);
  a.reset();
  a.reset();
  EXPECT_EQ(ended_b, 0);
}

TEST(IntrusivePtr, ReferencesCanBeHandedOutAndTakenBack) {
  int ended = 0;
  SessionPtr first = make_intrusive<Session>(ended);
  Session* raw = first.detach();
  EXPECT_EQ(ended, 0);
  SessionPtr retained = SessionPtr::retain(raw);
  EXPECT_FALSE(retained->sole_owner());
  SessionPtr adopted = SessionPtr::adopt(raw);
  retained.reset();
  EXPECT_TRUE(adopted->sole_owner());
  adopted.reset();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(SessionPtr::retain(nullptr), nullptr);
}

TEST(IntrusivePtr, ConvertsToItsBaseAndKeepsOneCount) {
  int ended = 0;
  auto secure = make_intrusive<SecureSession>(ended);
  SessionPtr base = secure;
  EXPECT_EQ(base, secure);
  SessionPtr moved = std::move(secure);
  base.reset();
  EXPECT_TRUE(moved->sole_owner());
  moved.reset();
  EXPECT_EQ(ended, 1);
}

TEST(IntrusivePtr, IsAKeyInSets) {
  int ended = 0;
  const SessionPtr a = make_intrusive<Session>(ended);
  const SessionPtr b = make_intrusive<Session>(ended);
  const std::set<SessionPtr> ordered{a, b, a};
  const std::unordered_set<SessionPtr> hashed{a, b, b};
  EXPECT_EQ(ordered.size(), 2u);
  EXPECT_EQ(hashed.size(), 2u);
  EXPECT_NE(a, b);
  EXPECT_EQ(a < b, a.get() < b.get());
}

TEST(IntrusivePtr, ACopyOfAnObjectHasACountOfItsOwn) {
  int ended = 0;
  const SessionPtr a = make_intrusive<Session>(ended);
  const SessionPtr also = a;
  const SessionPtr copy = make_intrusive<Session>(*a);
  EXPECT_TRUE(copy->sole_owner());
  *copy = *a;
  EXPECT_TRUE(copy->sole_owner());
}

struct Pool;
struct Pooled : Counted<Pooled, Pool> {};
struct Pool {
  static inline std::vector<Pooled*> free;
  static void dispose(Pooled* object) noexcept { free.push_back(object); }
};

TEST(IntrusivePtr, ADisposerTakesWhatDoesNotComeFromNew) {
  Pooled object;
  IntrusivePtr<Pooled>::adopt(&object).reset();
  EXPECT_EQ(Pool::free, std::vector<Pooled*>{&object});
}

}  // namespace
}  // namespace weft

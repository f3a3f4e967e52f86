// SPDX-License-Identifier: MIT
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "tests/exhaustion/failing_memory.h"
#include "tests/exhaustion/walk.h"
#include "weft/base/random.h"
#include "weft/base/slot_map.h"
#include "weft/mem/arena.h"
#include "weft/mem/bump.h"
#include "weft/mem/pool.h"
#include "weft/mem/ring_buffer.h"
#include "weft/mem/slab.h"
#include "weft/msg/queue/channel.h"
#include "weft/rt/bus/event_bus.h"
#include "weft/rt/exec/inline_executor.h"
#include "weft/rt/exec/strand.h"
#include "weft/rt/exec/thread_pool.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/sync/spsc_queue.h"
#include "weft/sync/wait_queue.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::FailingMemory;
using test::made;
using test::walk;

TEST(Exhaustion, TheHookFailsTheAllocationThatItIsToldTo) {
  FailingMemory memory(1, FailingMemory::Length::one);
  auto first = std::make_unique<int>(1);
  EXPECT_THROW((void)std::make_unique<int>(2), std::bad_alloc);
  auto third = std::make_unique<int>(3);
  EXPECT_TRUE(memory.failed());
}

TEST(Exhaustion, ASlabKeepsWhatItHandedOut) {
  walk([](FailingMemory&) {
    auto slab = mem::Slab::make({.block_size = 48, .first_blocks = 2});
    if (!made(slab)) {
      return;
    }
    std::array<void*, 200> blocks{};
    std::size_t live = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      blocks[i] = slab->allocate();
      if (blocks[i] != nullptr) {
        std::memset(blocks[i], static_cast<int>(i), 48);
        ++live;
      }
    }
    EXPECT_EQ(slab->live_count(), live);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i] != nullptr) {
        EXPECT_EQ(static_cast<unsigned char*>(blocks[i])[47], i);
        EXPECT_TRUE(slab->deallocate(blocks[i]));
      }
    }
    EXPECT_EQ(slab->live_count(), 0u);
  });
}

TEST(Exhaustion, ArenasAndRegionsRefuseWithANull) {
  walk([](FailingMemory& memory) {
    (void)made(mem::Bump::make(4096));
    mem::ArenaPool pool(4, {.block_size = 256});
    std::optional<mem::ArenaPool::Lease> lease(pool.lease());
    if (!*lease) {
      return;
    }
    std::size_t pieces = 0;
    for (std::size_t size : {100, 100, 100, 1000, 20, 200, 5000, 64}) {
      if (void* const piece = (*lease)->allocate(size); piece != nullptr) {
        std::memset(piece, 1, size);
        ++pieces;
      }
    }
    lease.reset();
    memory.end();
    EXPECT_NE(pool.lease()->allocate(100), nullptr);
    EXPECT_TRUE(pieces == 8 || memory.failed());
  });
}

TEST(Exhaustion, ABufferIsMadeWholeOrNotAtAll) {
  walk([](FailingMemory&) {
    std::array<mem::Buffer*, 64> buffers{};
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      buffers[i] = mem::Buffer::make(i * i * 100);
      if (buffers[i] != nullptr) {
        std::memset(buffers[i]->data(), static_cast<int>(i), i * i * 100);
      }
    }
    static std::uint8_t bytes[16];
    mem::Buffer* const external = mem::Buffer::make_external(bytes, &mem::Buffer::keep_bytes, nullptr);
    for (mem::Buffer* buffer : buffers) {
      if (buffer != nullptr) {
        buffer->release();
      }
    }
    if (external != nullptr) {
      external->release();
    }
  });
}

TEST(Exhaustion, ARingBufferKeepsItsBytesWhenItCannotGrow) {
  for (const bool copying : {false, true}) {
    walk([=](FailingMemory&) {
      constexpr std::size_t kMost = 1 << 16;
      auto buffer = copying ? mem::RingBuffer::make_copying(256, kMost) : mem::RingBuffer::make(4096, kMost);
      if (!made(buffer)) {
        return;
      }
      constexpr std::array<std::uint8_t, 1000> kPiece{7, 8, 9};
      std::size_t written = 0;
      for (int i = 0; i < 20; ++i) {
        written += made(buffer->write(kPiece)) ? kPiece.size() : 0;
      }
      EXPECT_EQ(buffer->size(), written);
      for (; written != 0; written -= kPiece.size()) {
        EXPECT_EQ(buffer->read_view()[2], 9);
        EXPECT_TRUE(buffer->consume(kPiece.size()));
      }
    });
  }
}

TEST(Exhaustion, ASlotMapHoldsWhatItTook) {
  walk([](FailingMemory&) {
    SlotMap<std::uint64_t> map;
    static std::array<SlotId, 3000> ids;
    std::uint32_t taken = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto id = map.emplace(i);
      ids[i] = made(id) ? *id : SlotId();
      taken += id ? 1 : 0;
    }
    EXPECT_EQ(map.size(), taken);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i]) {
        EXPECT_EQ(*map.find(ids[i]), i);
        EXPECT_TRUE(map.erase(ids[i]));
      }
    }
  });
}

// Also when the wheel runs out of memory while timers move from one level to the next.
TEST(Exhaustion, EveryTimerThatWasTakenFiresOnce) {
  walk([](FailingMemory& memory) {
    constexpr std::size_t kTimers = 1500;
    static std::array<int, kTimers> fired;
    fired.fill(0);
    std::array<bool, kTimers> expected{};
    rt::TimerWheel wheel{Instant{}};
    Random random(1);
    for (std::size_t i = 0; i < kTimers; ++i) {
      const auto deadline = [&] {
        return Instant{} + wheel.tick() * static_cast<Duration::rep>(random.below(100'000));
      };
      const rt::TimerId id = wheel.schedule(deadline(), {[](void* count) { ++*static_cast<int*>(count); }, &fired[i]});
      expected[i] = static_cast<bool>(id);
      if (id && i % 3 == 0) {
        (void)wheel.reschedule(id, deadline());  // after a refusal the timer keeps its old deadline
      }
      if (id && i % 5 == 0) {
        EXPECT_TRUE(wheel.cancel(id));
        expected[i] = false;
      }
    }
    for (int step = 1; step <= 20; ++step) {
      wheel.advance(Instant{} + wheel.tick() * (step * 2'500), 10'000);
    }
    memory.end();
    wheel.advance(Instant{} + wheel.tick() * 200'000, 10'000);
    EXPECT_EQ(wheel.size(), 0u);
    for (std::size_t i = 0; i < kTimers; ++i) {
      EXPECT_EQ(fired[i], expected[i] ? 1 : 0) << i;
    }
  });
}

TEST(Exhaustion, QueuesAreMadeWholeOrNotAtAll) {
  walk([](FailingMemory&) {
    if (auto ring = sync::SpscRing<int>::make(100); made(ring)) {
      EXPECT_TRUE(ring->try_push(1));
    }
    if (auto queue = sync::WaitQueue<int>::make(3, 16); made(queue)) {
      auto producer = (*queue)->producer();
      ASSERT_TRUE(producer);
      EXPECT_TRUE(producer->try_push(1));
      EXPECT_EQ(*(*queue)->try_pop(), 1);
    }
  });
}

TEST(Exhaustion, AnUnboundedQueueKeepsWhatItTookInOrder) {
  walk([](FailingMemory&) {
    sync::SpscQueue<std::uint64_t> queue;
    std::uint64_t pushed = 0;
    for (int i = 0; i < 2000; ++i) {
      if (std::uint64_t* const cell = queue.claim(); cell != nullptr) {
        *cell = pushed++;
        queue.stage();
        queue.publish();
      }
    }
    for (std::uint64_t i = 0; i < pushed; ++i) {
      ASSERT_NE(queue.front(), nullptr);
      EXPECT_EQ(*queue.front(), i);
      queue.pop();
    }
    EXPECT_EQ(queue.front(), nullptr);
  });
}

// Cells of a message that did not fit whole came out in front of the next message.
TEST(Exhaustion, AChannelTakesAWholeMessageOrNothing) {
  walk([](FailingMemory& memory) {
    msg::Channel channel;
    static std::array<msg::Cell, 700> parts;  // several rings
    std::size_t taken = 0;
    for (std::uint8_t message = 0; message < 4; ++message) {
      for (msg::Cell& part : parts) {
        part = {};
        part.more = &part != &parts.back();
        part.size = 1;
        part.body.small[0] = message;
      }
      taken += channel.push(parts) ? 1 : 0;
    }
    memory.end();
    std::size_t whole = 0;
    while (msg::Cell* first = channel.front()) {
      const std::uint8_t message = first->body.small[0];
      std::size_t count = 0;
      for (bool more = true; more; ++count) {
        msg::Cell* const part = channel.front();
        ASSERT_NE(part, nullptr);
        ASSERT_EQ(part->body.small[0], message);
        more = part->more;
        (void)channel.pop(!more, msg::Channel::footprint(*part));
      }
      EXPECT_EQ(count, parts.size());
      ++whole;
    }
    EXPECT_EQ(whole, taken);
  });
}

TEST(Exhaustion, ABusCallsExactlyTheSubscribedHandlers) {
  struct Event {};
  walk([](FailingMemory& memory) {
    std::optional<rt::EventBus> bus;
    try {
      bus.emplace();
    } catch (const std::bad_alloc&) {
      return;  // as any constructor
    }
    static int called;
    called = 0;
    std::array<rt::Subscription, 20> subscriptions;
    std::size_t subscribed = 0;
    for (rt::Subscription& subscription : subscriptions) {
      auto result = bus->subscribe<Event>([](const Event&) { ++called; });
      if (made(result)) {
        subscription = std::move(*result);
        ++subscribed;
      }
    }
    for (std::size_t i = 0; i < subscriptions.size(); i += 2) {
      subscribed -= subscriptions[i].active() ? 1 : 0;
      subscriptions[i].unsubscribe();  // also without memory for a new list
    }
    const std::size_t told = bus->publish(Event());
    EXPECT_EQ(static_cast<std::size_t>(called), told);
    EXPECT_TRUE(told == subscribed || (told == 0 && memory.failed())) << told;  // a thread's first needs memory
    memory.end();
    called = 0;
    EXPECT_EQ(bus->publish(Event()), subscribed);
    EXPECT_EQ(static_cast<std::size_t>(called), subscribed);
  });
}

TEST(Exhaustion, AHandlerMayDestroyTheBusWithoutMemory) {
  struct Event {};
  auto bus = std::make_unique<rt::EventBus>();
  auto other = std::make_unique<rt::EventBus>();
  auto subscription = bus->subscribe<Event>([&](const Event&) {
    const FailingMemory memory(0, FailingMemory::Length::all);
    bus.reset();
    other.reset();
  });
  ASSERT_TRUE(subscription);
  EXPECT_EQ(bus->publish(Event()), 1u);
}

TEST(Exhaustion, APoolRunsEveryTaskThatItTook) {
  walk([](FailingMemory& memory) {
    std::atomic<int> ran{0};
    auto pool = rt::ThreadPool::make_fixed(1);
    if (!made(pool)) {
      return;
    }
    int taken = 0;
    std::array<rt::Future<int>, 8> futures;
    std::array<std::uint64_t, 64> large{};
    for (std::size_t i = 0; i < futures.size(); ++i) {
      taken += made((*pool)->execute([&ran] { ran.fetch_add(1); })) ? 1 : 0;
      taken += made((*pool)->execute([&ran, large] { ran.fetch_add(large.empty() ? 0 : 1); })) ? 1 : 0;
      const auto one = [] { return 1; };
      futures[i] = i % 2 == 0 ? (*pool)->submit(one) : (*pool)->submit_after(1us, one);
    }
    memory.end();
    for (rt::Future<int>& future : futures) {
      (void)made(future.get());  // none is left without an answer
    }
    EXPECT_TRUE((*pool)->stop(rt::StopMode::drain, kNever));
    EXPECT_EQ(ran.load(), taken);
  });
}

TEST(Exhaustion, StoppingNeedsNoMemory) {
  std::optional<rt::InlineExecutor> below(std::in_place);
  std::optional<rt::Strand> strand(std::in_place, *below);
  std::vector<rt::Future<int>> futures;
  ASSERT_TRUE(strand->execute([&] {
    for (int i = 0; i < 100; ++i) {
      futures.push_back(strand->submit([] { return 1; }));
    }
    futures.push_back(below->submit_after(1h, [] { return 1; }));
    const FailingMemory memory(0, FailingMemory::Length::all);
    EXPECT_EQ(strand->stop(rt::StopMode::abandon, kNever).error(), Errc::invalid_state);
    EXPECT_FALSE(memory.failed());
  }));
  bool failed = false;
  {
    const FailingMemory memory(0, FailingMemory::Length::all);
    strand.reset();
    below.reset();
    failed = memory.failed();
  }
  EXPECT_FALSE(failed);  // after the scope: a failed expectation needs memory
  for (rt::Future<int>& future : futures) {
    EXPECT_EQ(future.get().error(), Errc::terminated);
  }
}

TEST(Exhaustion, AFreedBufferOfAPoolNeedsNoMemoryAndIsTakenAgain) {
  constexpr std::size_t kSizes[] = {128, 256, 4096, mem::Buffer::kPooledMax};
  bool refused = false;
  std::size_t again = 0;
  std::vector<mem::Buffer*> buffers;
  buffers.reserve(4 * 16);
  std::thread([&] {  // a pool of its own
    for (const std::size_t size : kSizes) {
      for (int i = 0; i < 16; ++i) {
        buffers.push_back(mem::Buffer::make(size));
      }
    }
    const FailingMemory memory(0, FailingMemory::Length::all);
    for (mem::Buffer* const buffer : buffers) {
      buffer->release();
    }
    buffers.clear();
    refused = memory.failed();
    for (const std::size_t size : kSizes) {
      for (int i = 0; i < 16; ++i) {
        if (mem::Buffer* const buffer = mem::Buffer::make(size); buffer != nullptr) {
          buffers.push_back(buffer);
          ++again;
        }
      }
    }
    for (mem::Buffer* const buffer : buffers) {
      buffer->release();
    }
  })
      .join();
  EXPECT_FALSE(refused);
  EXPECT_EQ(again, 4 * 16u);
}

}  // namespace
}  // namespace weft

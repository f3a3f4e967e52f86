// SPDX-License-Identifier: MIT
// The services of the machine: fences, processors, files, descriptors.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "weft/sys/address.h"
#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"
#include "weft/sys/fd.h"
#include "weft/sys/fence.h"
#include "weft/sys/path.h"
#include "weft/sys/socket.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

// Dekker's pattern, free-running. Two threads each count in a word of their own, fence, and read the other's
// word. Suppose thread A, at count `a`, still read `b` in the other word. Then thread B's read after storing
// `b + 1` must return `a` or more. Returns the number of violations.
template <typename FenceA, typename FenceB>
int count_missed_stores(FenceA fence_a, FenceB fence_b) {
  constexpr std::uint32_t kMaxRounds = 1'000'000;  // a heavy fence takes a microsecond or more: kEnough ends it earlier
  constexpr Duration kEnough = std::chrono::milliseconds(30);
  alignas(64) std::atomic<std::uint32_t> word_a{0};
  alignas(64) std::atomic<std::uint32_t> word_b{0};
  std::atomic<bool> ended{false};
  std::vector<std::uint32_t> latest_a_that_saw(kMaxRounds + 1);             // indexed by b
  std::vector<std::uint32_t> a_seen_by(kMaxRounds + 1, ~std::uint32_t{0});  // indexed by b
  std::thread other([&] {
    while (word_a.load() == 0) {  // until the first thread runs
      std::this_thread::yield();
    }
    const Instant start = now();
    for (std::uint32_t b = 1; b <= kMaxRounds && (b % 64 != 0 || now() - start < kEnough); ++b) {
      word_b.store(b, std::memory_order_relaxed);
      fence_b();
      a_seen_by[b] = word_a.load(std::memory_order_relaxed);
    }
    ended.store(true, std::memory_order_release);
  });
  for (std::uint32_t a = 1; !ended.load(std::memory_order_acquire); ++a) {
    word_a.store(a, std::memory_order_relaxed);
    fence_a();
    latest_a_that_saw[word_b.load(std::memory_order_relaxed)] = a;
  }
  other.join();
  int missed = 0;
  for (std::uint32_t b = 0; b < kMaxRounds; ++b) {
    missed += a_seen_by[b + 1] < latest_a_that_saw[b] ? 1 : 0;
  }
  return missed;
}

// Several starts: the relative timing of the two threads decides how often a missing fence would show.
constexpr int kBursts = 8;

TEST(Fence, LightAndHeavyOrderAStoreBeforeALoad) {
  for (int burst = 0; burst < kBursts; ++burst) {
    EXPECT_EQ(count_missed_stores([] { light_fence(); }, [] { heavy_fence(); }), 0);
  }
}

TEST(Fence, FullFencesOrderAStoreBeforeALoad) {
  for (int burst = 0; burst < kBursts; ++burst) {
    EXPECT_EQ(count_missed_stores([] { full_fence(); }, [] { full_fence(); }), 0);
  }
}

TEST(Fence, TheEnvironmentForcesFullFences) {
  const char* disabled = std::getenv("WEFT_NO_MEMBARRIER");
  if (disabled != nullptr && std::string_view(disabled) == "1") {
    EXPECT_FALSE(asymmetric_fences());
  }
  EXPECT_EQ(asymmetric_fences(), asymmetric_fences());
}

TEST(FenceDeathTest, ForcedFullFencesAreSeenByANewProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a new process: the mode is decided once per process
  ::setenv("WEFT_NO_MEMBARRIER", "1", 1);
  EXPECT_EXIT(
      {
        light_fence();
        heavy_fence();
        std::exit(asymmetric_fences() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
  ::unsetenv("WEFT_NO_MEMBARRIER");
}

TEST(Cpu, ReadsQuotaTexts) {
  EXPECT_DOUBLE_EQ(parse_cpu_max("200000 100000\n"), 2.0);
  EXPECT_DOUBLE_EQ(parse_cpu_max("50000 100000"), 0.5);
  for (const char* unlimited : {"max 100000\n", "", "100000", "0 100000", "-1 100000", "100000 0", "x y"}) {
    EXPECT_DOUBLE_EQ(parse_cpu_max(unlimited), 0.0) << unlimited;
  }
}

TEST(Cpu, AllowsAtLeastOneAndNoMoreThanTheMask) {
  cpu_set_t mask;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_GE(allowed_cpus(), 1u);
  EXPECT_LE(allowed_cpus(), static_cast<unsigned>(CPU_COUNT(&mask)));
  EXPECT_TRUE(quota_limited() || allowed_cpus() == static_cast<unsigned>(CPU_COUNT(&mask)));
}

TEST(Cpu, NamesThreadsWithinTheLimit) {
  std::thread([] {
    name_thread("weft-a-name-beyond-the-limit");
    char name[32] = {};
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    EXPECT_STREQ(name, "weft-a-name-bey");
  }).join();
}

TEST(Fd, ClosesOnceAndMoves) {
  Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(first.valid());
  const int number = first.fd();
  Fd second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.fd(), number);
  Fd& alias = second;
  second = std::move(alias);
  EXPECT_EQ(second.fd(), number);
  second.close();
  second.close();
  EXPECT_FALSE(second.valid());
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST(Path, MakesAndRemovesAPrivateDirectory) {
  const std::string directory = std::move(make_private_directory()).value();
  const std::string socket_path = directory + "/s";
  const std::string plain_path = directory + "/p";
  EXPECT_EQ(identify_file(socket_path).error().code(), Errc::address_unavailable);
  {
    const Fd listener = std::move(open_unix_listener(*SocketAddress::from_path(socket_path), {})).value();
    std::ofstream(plain_path) << "x";
  }
  const auto socket_file = identify_file(socket_path).value();
  const auto plain_file = identify_file(plain_path).value();
  EXPECT_TRUE(socket_file.is_socket);
  EXPECT_FALSE(plain_file.is_socket);
  EXPECT_FALSE(socket_file == plain_file);
  EXPECT_FALSE(remove_directory(directory));
  EXPECT_TRUE(remove_file(socket_path));
  EXPECT_TRUE(remove_file(plain_path));
  EXPECT_FALSE(remove_file(plain_path));
  EXPECT_TRUE(remove_directory(directory));
}

TEST(Path, LocksADirectoryAgainstOthersAndGivesUpQuietly) {
  const std::string directory = std::move(make_private_directory()).value();
  {
    const Fd lock = lock_parent_directory(directory + "/x");
    EXPECT_TRUE(lock.valid());
    EXPECT_FALSE(lock_parent_directory(directory + "/y").valid());
  }
  EXPECT_TRUE(lock_parent_directory(directory + "/y").valid());
  EXPECT_FALSE(lock_parent_directory(directory + "/none/y").valid());
  EXPECT_TRUE(remove_directory(directory));
}

}  // namespace
}  // namespace weft::sys

// SPDX-License-Identifier: MIT
#include "weft/sys/topology.h"

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "weft/sys/path.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

using Cpus = std::vector<unsigned>;

// A made-up /sys/devices.
class Tree : public testing::Test {
 protected:
  Tree() : root_(make_private_directory().value()) {}
  ~Tree() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void write_cpu(unsigned cpu, const std::string& siblings) {
    write("system/cpu/cpu" + std::to_string(cpu) + "/topology/core_cpus_list", siblings);
  }
  Cpus cores(const Cpus& allowed) {
    Cpus cpus;
    for (const PhysicalCore& core : physical_cores(allowed, root_)) {
      cpus.push_back(core.cpu);
    }
    return cpus;
  }
  std::string root_;
};

Cpus up_to(unsigned count) {
  Cpus cpus(count);
  std::iota(cpus.begin(), cpus.end(), 0u);
  return cpus;
}

TEST(CpuList, ParsesWhatTheKernelWrites) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n"), (Cpus{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list("5"), Cpus{5});
  EXPECT_EQ(parse_cpu_list("3,1,1-2"), (Cpus{1, 2, 3}));
}

TEST(CpuList, TextThatDoesNotParseEndsIt) {
  EXPECT_EQ(parse_cpu_list(""), Cpus{});
  EXPECT_EQ(parse_cpu_list("\n"), Cpus{});
  EXPECT_EQ(parse_cpu_list("1,x,2"), Cpus{1});
  EXPECT_EQ(parse_cpu_list("1,2-"), Cpus{1});
  EXPECT_EQ(parse_cpu_list("4-2"), Cpus{});
  EXPECT_EQ(parse_cpu_list("99999999999"), Cpus{});
  EXPECT_EQ(parse_cpu_list("0-4294967295").size(), kCpuIdsMax) << "bounded";
  EXPECT_EQ(parse_cpu_list("9000,1"), Cpus{1});
}

TEST_F(Tree, TakesOneThreadOfEachCore) {
  for (unsigned cpu = 0; cpu < 8; ++cpu) {
    write_cpu(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  }
  EXPECT_EQ(cores(up_to(8)), (Cpus{0, 1, 2, 3}));
}

TEST_F(Tree, KnowsTheOldNameOfTheSiblings) {
  for (unsigned cpu = 0; cpu < 4; ++cpu) {
    write("system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", cpu < 2 ? "0-1" : "2-3");
  }
  EXPECT_EQ(cores(up_to(4)), (Cpus{0, 2}));
}

TEST_F(Tree, ACpusetMayLeaveOnlyTheSecondThreadOfACore) {
  for (unsigned cpu = 0; cpu < 8; ++cpu) {
    write_cpu(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  }
  EXPECT_EQ(cores({2, 5, 6, 7}), (Cpus{2, 5, 7})) << "2 and 6 are one core";
}

TEST_F(Tree, NumbersMayHaveGapsAndProcessorsMayBeOffline) {
  write("system/cpu/online", "0,4,8-9,300");
  for (const unsigned cpu : {0u, 4u, 8u, 9u, 300u}) {
    write_cpu(cpu, std::to_string(cpu));
  }
  EXPECT_EQ(cores({0, 2, 4, 9, 300}), (Cpus{0, 4, 9, 300})) << "2 is offline, 8 is not allowed";
}

TEST_F(Tree, StrongCoresOfAHybridX86ComeFirst) {
  // Two strong cores with two threads, numbered last, and four efficient ones.
  write("cpu_core/cpus", "4-7");
  write("cpu_atom/cpus", "0-3");
  for (unsigned cpu = 0; cpu < 4; ++cpu) {
    write_cpu(cpu, std::to_string(cpu));
  }
  for (unsigned cpu = 4; cpu < 8; ++cpu) {
    write_cpu(cpu, cpu < 6 ? "4-5" : "6-7");
  }
  EXPECT_EQ(cores(up_to(8)), (Cpus{4, 6, 0, 1, 2, 3}));
  const auto found = physical_cores(up_to(8), root_);
  EXPECT_GT(found.front().capacity, found.back().capacity);
}

TEST_F(Tree, CapacitiesOrderTheCoresWhereTheSystemTellsThem) {
  const unsigned capacities[] = {446, 446, 871, 1024};
  for (unsigned cpu = 0; cpu < 4; ++cpu) {
    write_cpu(cpu, std::to_string(cpu));
    write("system/cpu/cpu" + std::to_string(cpu) + "/cpu_capacity", std::to_string(capacities[cpu]));
  }
  EXPECT_EQ(cores(up_to(4)), (Cpus{3, 2, 0, 1}));
}

TEST_F(Tree, CoresOfOneNodeAreNeighbours) {
  write("system/node/online", "0,2");
  write("system/node/node0/cpulist", "0,2,4,6");
  write("system/node/node2/cpulist", "1,3,5,7");
  for (unsigned cpu = 0; cpu < 8; ++cpu) {
    write_cpu(cpu, std::to_string(cpu));
  }
  const auto found = physical_cores(up_to(8), root_);
  ASSERT_EQ(found.size(), 8u);
  EXPECT_EQ(cores(up_to(8)), (Cpus{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(found[0].node, 0u);
  EXPECT_EQ(found[7].node, 2u);
}

TEST_F(Tree, AMachineThatTellsNothingHasOneCorePerProcessor) {
  EXPECT_EQ(cores({3, 1, 5}), (Cpus{1, 3, 5}));
  EXPECT_EQ(cores({}), Cpus{});
}

TEST_F(Tree, NonsenseInItsFilesIsAsGoodAsNone) {
  write("system/cpu/online", "garbage");
  write_cpu(0, "7-9");  // not its own core
  write_cpu(1, "");
  write("system/cpu/cpu1/cpu_capacity", "strong");
  write("system/node/online", "0");
  EXPECT_EQ(cores(up_to(2)), (Cpus{0, 1}));
}

TEST(Topology, ThisMachineHasACoreForThisThread) {
  const auto allowed = allowed_cpu_ids();
  ASSERT_FALSE(allowed.empty());
  const auto cores = physical_cores(allowed);
  ASSERT_FALSE(cores.empty());
  EXPECT_LE(cores.size(), allowed.size());
  for (const PhysicalCore& core : cores) {
    EXPECT_TRUE(std::find(allowed.begin(), allowed.end(), core.cpu) != allowed.end());
  }
}

}  // namespace
}  // namespace weft::sys

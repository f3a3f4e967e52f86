// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/mem/orphan_list.h"
#include "weft/mem/return_stack.h"
#include <gtest/gtest.h>

namespace weft::mem {
namespace {

struct Node {
  sync::Plain<Node*> next = nullptr;
  sync::Plain<int> bytes = 0;  // the freer's last write to the block
  int taken = 0;               // by the owner
  int refused = 0;             // by a full stack
};

struct Stack {
  ReturnStack<Node> stack;
  Node nodes[4];

  void use(int first, int last) {
    for (int i = first; i <= last; ++i) {
      nodes[i].bytes = i + 1;
    }
  }
  void give_back(int index) {
    use(index, index);
    stack.push(&nodes[index], &nodes[index]);
  }
  void give_back_both(int first) {
    use(first, first + 1);
    nodes[first].next = &nodes[first + 1];
    stack.push(&nodes[first], &nodes[first + 1]);
  }
  void give_back_if_there_is_room(int index) {
    use(index, index);
    if (!stack.try_push(&nodes[index], &nodes[index], 1)) {
      nodes[index].bytes = 0;  // the freer still has it
      ++nodes[index].refused;
    }
  }
  void take_bounded() { stack.settle(static_cast<std::size_t>(take())); }
  // Returns the number of nodes taken.
  int take() {
    int count = 0;
    for (Node* node = stack.take_all(); node != nullptr;) {
      Node* const next = node->next;
      model::require(node->bytes == static_cast<int>(node - nodes) + 1, "a block comes home before its last use");
      ++node->taken;
      ++count;
      node->bytes = 0;  // the owner uses it again
      node = next;
    }
    return count;
  }
  void check(int count) {
    take();
    for (int i = 0; i < count; ++i) {
      model::require(nodes[i].taken == 1, "a block is lost or comes twice");
    }
  }
};

void two_freers_and_the_owner() {
  Stack stack;
  model::run_threads([&] { stack.give_back(0); }, [&] { stack.give_back(1); }, [&] { (void)stack.take(); });
  stack.check(2);
}

void a_chain_comes_whole() {
  Stack stack;
  model::run_threads([&] { stack.give_back_both(0); }, [&] { stack.give_back_both(2); },
                     [&] { model::require(stack.take() % 2 == 0, "a chain is torn"); });
  stack.check(4);
}

// The owner uses and frees again a block that came back: its address is on top a second time.
void a_block_goes_round() {
  Stack stack;
  model::run_threads([&] { stack.give_back(0); }, [&] { stack.give_back(1); },
                     [&] {
                       if (stack.take() > 0 && stack.nodes[1].taken == 1 && stack.nodes[0].taken == 0) {
                         stack.nodes[1].taken = 0;
                         stack.give_back(1);
                       }
                     });
  stack.check(2);
}

void check_bounded(Stack& stack, int count) {
  stack.take_bounded();
  for (int i = 0; i < count; ++i) {
    model::require(stack.nodes[i].taken + stack.nodes[i].refused == 1, "a block is lost, or comes and is refused");
  }
  stack.stack.set_bytes_max(1);
  stack.give_back_if_there_is_room(3);
  model::require(stack.nodes[3].refused == 0, "an empty stack refuses");
}

void a_full_stack_refuses() {
  Stack stack;
  stack.stack.set_bytes_max(1);
  model::run_threads([&] { stack.give_back_if_there_is_room(0); },
                     [&] {
                       stack.give_back_if_there_is_room(1);
                       stack.give_back_if_there_is_room(2);
                     },
                     [&] { stack.take_bounded(); });
  check_bounded(stack, 3);
}

void the_owner_ends() {
  Stack stack;
  model::run_threads([&] { stack.give_back_if_there_is_room(0); }, [&] { stack.give_back_if_there_is_room(1); },
                     [&] {
                       stack.stack.set_bytes_max(0);
                       stack.take_bounded();
                     });
  check_bounded(stack, 2);
}

// A pool: its owner ends, and another thread takes the pool over while a third one gives blocks back.
struct Shelter {
  Stack stack;
  sync::Plain<int> bytes_taken = 0;  // of the owner, whichever it is
  Shelter* next_orphan = nullptr;

  void take() {
    const int count = stack.take();
    bytes_taken = bytes_taken + count;
    stack.stack.settle(static_cast<std::size_t>(count));
  }
};

void another_thread_takes_the_stack_over() {
  Shelter shelter;
  BasicOrphanList<Shelter, model::Mutex> orphans;
  bool over = false;
  model::run_threads(
      [&] {
        shelter.stack.give_back_if_there_is_room(0);
        shelter.stack.give_back_if_there_is_room(1);
      },
      [&] {
        shelter.take();
        shelter.stack.stack.set_bytes_max(1);
        shelter.take();
        orphans.push(shelter);
      },
      [&] {
        if (Shelter* const orphan = orphans.pop(); orphan != nullptr) {
          over = true;
          orphan->stack.stack.set_bytes_max(8);
          orphan->take();
        }
      });
  model::require(over == (orphans.pop() == nullptr), "the stack is lost, or has two owners");
  shelter.take();
  check_bounded(shelter.stack, 2);
  const Node* const nodes = shelter.stack.nodes;
  model::require(shelter.bytes_taken == nodes[0].taken + nodes[1].taken, "a byte is counted twice, or not at all");
}

struct Orphan {
  sync::Plain<int> bytes = 0;  // the last write of its thread
  int owners = 0;
  Orphan* next_orphan = nullptr;
};
using Orphans = BasicOrphanList<Orphan, model::Mutex>;

// Threads end, some of them after each other, while others take over their objects.
void each_orphan_gets_one_other_owner() {
  Orphan orphans[3];
  Orphans list;
  const auto leave = [&](int index) {
    orphans[index].bytes = index + 1;
    list.push(orphans[index]);
  };
  const auto take = [&] {
    Orphan* const orphan = list.pop();
    if (orphan != nullptr) {
      model::require(orphan->bytes == static_cast<int>(orphan - orphans) + 1, "the writes of its thread are missing");
      orphan->bytes = 0;
      ++orphan->owners;
    }
    return orphan != nullptr;
  };
  model::run_threads(
      [&] {
        leave(0);
        leave(1);
      },
      [&] {
        leave(2);
        (void)take();
      },
      [&] { (void)take(); });
  while (take()) {
  }
  for (const Orphan& orphan : orphans) {
    model::require(orphan.owners == 1, "an object is lost, or has two owners");
  }
}

void the_orphan_that_came_last_goes_first() {
  Orphan orphans[2];
  Orphans list;
  model::require(list.pop() == nullptr, "a new list has an object");
  list.push(orphans[0]);
  list.push(orphans[1]);
  model::require(list.pop() == &orphans[1] && list.pop() == &orphans[0], "the objects go in another order");
  model::require(list.pop() == nullptr, "an object goes twice");
}

constexpr model::Scenario kScenarios[] = {
    {"two_freers_and_the_owner", two_freers_and_the_owner},
    {"a_chain_comes_whole", a_chain_comes_whole},
    {"a_block_goes_round", a_block_goes_round},
    {"a_full_stack_refuses", a_full_stack_refuses},
    {"the_owner_ends", the_owner_ends},
    {"another_thread_takes_the_stack_over", another_thread_takes_the_stack_over, {.preemptions = 3}},
    {"each_orphan_gets_one_other_owner", each_orphan_gets_one_other_owner, {.preemptions = 3}},
    {"the_orphan_that_came_last_goes_first", the_orphan_that_came_last_goes_first},
};

TEST(ReturnStackModel, LosesNothingAndGivesNothingTwice) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(ReturnStackModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("mem/return_stack.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 9u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::mem

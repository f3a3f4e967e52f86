// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

namespace weft::msg {

class SocketCore;

// The sockets whose batches the calling thread began, in a list of the thread. A thread that waits, on whatever socket,
// first flushes its messages on all of them: a thread that sends on one socket and then receives on another would
// otherwise wait for the I/O thread's nap.
// Affinity: each thread has its own list. Cost: a weak reference per socket and wait; nothing for a message that joins
// a batch. A thread that never waits leaves its batches to the I/O thread. Its list has at most 8 places, or twice as
// many as the most sockets that it ever held at once: a full list first drops sockets that are gone or listed twice.

// Without memory for the list, the I/O thread alone flushes the batch.
void list_at_this_thread(std::weak_ptr<SocketCore> core) noexcept;
void flush_this_threads_batches() noexcept;

}  // namespace weft::msg

// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bench/cell.h"

// The interface to the measured libraries: the workloads call every engine through the same virtual functions.
// A refused call ends the program through fail().
namespace bench {

// One socket, or one end of another carrier of messages. Affinity: one thread at a time.
class End {
 public:
  virtual ~End() = default;
  virtual void send(const void* data, std::size_t size) = 0;            // waits for room
  virtual std::size_t receive(void* target, std::size_t capacity) = 0;  // waits; returns the size of the message
  virtual void flush() {}  // after the last message of a repetition; for ends that batch by hand
  // Messages without a copy: written where they will be sent from, and read where they arrived.
  virtual unsigned char* loan(std::size_t size);
  virtual void send_loan();
  virtual const unsigned char* receive_loan(std::size_t& size);  // valid until give_back()
  virtual void give_back();
};

using Ends = std::vector<std::unique_ptr<End>>;

// Passed from the binding side to the connecting one; in shared memory.
struct Addresses {
  std::array<std::array<char, 128>, kLanesMax> endpoints{};
  std::array<char, 41> server_public{}, server_secret{}, client_public{}, client_secret{};  // CURVE
  std::array<char, 128> certificate{}, key{};                                               // TLS: PEM files
};

// A certificate for 127.0.0.1, which is its own authority, by the program openssl. The process that made it removes it.
void make_certificate(Addresses& addresses);

// Engine: a library, or the system without one. Owner: main; a forked process has its own. Affinity: different
// threads may call bind() and connect(), one after the other.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string version() const = 0;
  // The file that it was loaded from; "" without a library.
  virtual std::string path() const = 0;
  virtual void prepare(const Cell& cell, Addresses& addresses);   // before the second process is forked
  virtual Ends bind(const Cell& cell, Addresses& addresses) = 0;  // one end per lane of cell.binder()
  virtual Ends connect(const Cell& cell, const Addresses& addresses) = 0;
};

std::unique_ptr<Engine> make_zmq();  // the libzmq.so.5 that this program was started with
// The limits: a stream of frames in batches over a socket, a ring of cells between threads; for round trips a
// socket or a ring, `spinning` or sleeping.
std::unique_ptr<Engine> make_raw(bool spinning);
std::unique_ptr<Engine> make_nng();  // fails where there is no libnng.so.1

}  // namespace bench

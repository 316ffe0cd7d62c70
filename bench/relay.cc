// SPDX-License-Identifier: Apache-2.0
// The reference of bench overhead: client → front → worker → back with nothing in it but what a process per
// model cannot do without: AF_UNIX SEQPACKET for wake-ups, one memfd copy each way, blocking. No HTTP, no
// JSON.
//   tonnage-bench-relay BYTES REQUESTS CLIENT_CPU FRONT_CPU WORKER_CPU     (a CPU of -1: not pinned)
// Prints {"p50_us":…,"p99_us":…}.
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace tonnage::bench {
namespace {

constexpr std::size_t kMaxBytes = 64 << 10;  // one SEQPACKET message
constexpr int kWarmup = 1000;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void pin(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) die("sched_setaffinity");
}

struct Pair {
  int near = -1;
  int far = -1;
};
Pair make_pair() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds.data()) != 0) die("socketpair");
  return {fds[0], fds[1]};
}

char* map_shared(std::size_t bytes) {
  const int fd = ::memfd_create("relay", 0);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) die("memfd_create");
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (at == MAP_FAILED) die("mmap");
  return static_cast<char*>(at);
}

void run_worker(int front, const char* input, char* output) {
  std::uint64_t size = 0;
  while (::recv(front, &size, sizeof size, 0) == sizeof size) {
    std::memcpy(output, input, size);
    if (::send(front, &size, sizeof size, 0) < 0) return;
  }
}

void run_front(int client, int worker, char* input, const char* output) {
  std::vector<char> message(kMaxBytes);
  for (;;) {
    const ssize_t got = ::recv(client, message.data(), message.size(), 0);
    if (got <= 0) return;
    const auto size = static_cast<std::uint64_t>(got);
    std::memcpy(input, message.data(), size);
    std::uint64_t done = 0;
    if (::send(worker, &size, sizeof size, 0) < 0 || ::recv(worker, &done, sizeof done, 0) != sizeof done)
      return;
    std::memcpy(message.data(), output, done);
    if (::send(client, message.data(), done, 0) < 0) return;
  }
}

template <typename Body>
pid_t spawn(int cpu, Body body) {
  const pid_t child = ::fork();
  if (child < 0) die("fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(cpu);
    body();
    ::_exit(0);
  }
  return child;
}

std::vector<double> measure(int front, std::size_t bytes, int requests) {
  std::vector<char> out(bytes, 'x');
  std::vector<char> in(bytes);
  std::vector<double> micros;
  micros.reserve(static_cast<std::size_t>(requests));
  for (int i = -kWarmup; i < requests; ++i) {
    const auto before = std::chrono::steady_clock::now();
    if (::send(front, out.data(), bytes, 0) < 0 || ::recv(front, in.data(), bytes, 0) < 0) die("relay");
    const auto after = std::chrono::steady_clock::now();
    if (i >= 0) micros.push_back(std::chrono::duration<double, std::micro>(after - before).count());
  }
  std::sort(micros.begin(), micros.end());
  return micros;
}

}  // namespace
}  // namespace tonnage::bench

int main(int argc, char** argv) {
  using namespace tonnage::bench;
  if (argc != 6) {
    std::fprintf(stderr, "usage: tonnage-bench-relay BYTES REQUESTS CLIENT_CPU FRONT_CPU WORKER_CPU\n");
    return 2;
  }
  const auto bytes =
      static_cast<std::size_t>(std::clamp(std::atol(argv[1]), 1L, static_cast<long>(kMaxBytes)));
  const int requests = std::max(std::atoi(argv[2]), 1);
  char* const input = map_shared(kMaxBytes);
  char* const output = map_shared(kMaxBytes);
  const Pair outer = make_pair();
  const Pair inner = make_pair();
  const pid_t worker = spawn(std::atoi(argv[5]), [&] { run_worker(inner.far, input, output); });
  const pid_t front = spawn(std::atoi(argv[4]), [&] { run_front(outer.far, inner.near, input, output); });
  pin(std::atoi(argv[3]));
  const std::vector<double> micros = measure(outer.near, bytes, requests);
  for (const pid_t child : {front, worker}) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  fmt::print("{{\"p50_us\":{:.2f},\"p99_us\":{:.2f}}}\n", micros[micros.size() / 2],
             micros[micros.size() * 99 / 100]);
  return 0;
}

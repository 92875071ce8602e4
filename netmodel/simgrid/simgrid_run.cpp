/* See netmodel/simgrid/simgrid_run.h.
 *
 * Comms are one-sided (no actors, no mailboxes) and started from completion callbacks, which is SimGrid's fastest way;
 * creating all of them up front with successors is quadratic. Dates of timers wait in a queue of ours with one SimGrid
 * timer for the earliest: SimGrid's heap of timers has no order among equal dates, and the client wants to know when an
 * instant is over. SimGrid handles ended comms before due timers, so a timer for "now", armed by the first completion
 * of an instant, fires after the last.
 *
 * Comms carry whole bytes. Bandwidths, the TCP window and sizes are all scaled by 2^16, which changes no date and lets
 * fractions of a byte through. */
#include "netmodel/simgrid/simgrid_run.h"

#include <cmath>
#include <cstdio>
#include <exception>
#include <queue>
#include <vector>

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/Activity.hpp>
#include <simgrid/s4u/Comm.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>

#define PL_EXPORT extern "C" __attribute__((visibility("default")))

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

namespace {

constexpr double byte_scale = 65536;

/* A date of ours: a task completes or, with `send`, its bytes start to move. Stale when the task's version moved on. */
struct due {
  double date_s;
  uint32_t task, version;
  bool send;
  bool operator<(const due &other) const { /* a max-heap: the latest is smallest */
    return date_s > other.date_s || (date_s == other.date_s && task > other.task);
  }
};

struct task_state {
  s4u::CommPtr comm;
  uint32_t version = 0, source = 0, destination = 0;
  double size_bytes = 0;
};

} // namespace

struct pl_simgrid_loop {
  const pl_simgrid_loop_client *client;
  std::vector<s4u::Host *> hosts;
  std::vector<task_state> tasks;
  std::priority_queue<due> queue;
  std::vector<s4u::CommPtr> ended; /* kept until the instant is over: SimGrid still holds them in its call stack */
  double wake_s = -1;              /* date of the earliest SimGrid timer that is set */
  bool in_instant = false;
};

namespace {

void wake(pl_simgrid_loop *loop);

void wake_at(pl_simgrid_loop *loop, double date_s) {
  if (loop->wake_s >= 0 && loop->wake_s <= date_s) return;
  loop->wake_s = date_s;
  Timer::set(date_s, [loop] { wake(loop); });
}

void send_now(pl_simgrid_loop *loop, uint32_t task) {
  task_state &state = loop->tasks[task];
  state.comm = s4u::Comm::sendto_init(loop->hosts[state.source], loop->hosts[state.destination]);
  state.comm->set_payload_size(static_cast<uint64_t>(std::llround(std::fmax(state.size_bytes * byte_scale, 1.0))));
  state.comm->set_data(reinterpret_cast<void *>(static_cast<uintptr_t>(task) + 1));
  state.comm->vetoable_start();
}

/* Everything that is due by now, then the flush; whatever the flush makes due at once, too. */
void wake(pl_simgrid_loop *loop) {
  const double now_s = s4u::Engine::get_clock();
  loop->wake_s = -1;
  for (;;) {
    while (!loop->queue.empty() && loop->queue.top().date_s <= now_s) {
      const due next = loop->queue.top();
      loop->queue.pop();
      if (loop->tasks[next.task].version != next.version) continue;
      if (next.send) {
        send_now(loop, next.task);
      } else {
        loop->tasks[next.task].version++;
        loop->in_instant = true;
        loop->client->complete(loop->client->data, next.task, now_s);
      }
    }
    if (!loop->in_instant) break;
    loop->in_instant = false;
    loop->client->flush(loop->client->data, now_s);
  }
  loop->ended.clear();
  if (!loop->queue.empty()) wake_at(loop, loop->queue.top().date_s);
}

void comm_ended(pl_simgrid_loop *loop, const s4u::Activity &activity) {
  const auto *comm = dynamic_cast<const s4u::Comm *>(&activity);
  if (comm == nullptr) return;
  const uint32_t task = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(comm->get_data<void>()) - 1);
  const double now_s = s4u::Engine::get_clock();
  loop->ended.push_back(loop->tasks[task].comm);
  loop->tasks[task].comm = nullptr;
  loop->in_instant = true;
  loop->client->complete(loop->client->data, task, now_s);
  wake_at(loop, now_s);
}

void configure(const pl_simgrid_loop_options *options) {
  char window[64];
  /* SimGrid's default window, or one that never binds. */
  snprintf(window, sizeof window, "network/TCP-gamma:%.17g", options->rtt ? 4194304.0 * byte_scale : 1e300);
  s4u::Engine::set_config(window);
  s4u::Engine::set_config(options->rtt ? "network/latency-factor:1" : "network/latency-factor:0");
  s4u::Engine::set_config("network/bandwidth-factor:1");
  for (s4u::Link *link : s4u::Engine::get_instance()->get_all_links())
    link->set_bandwidth(link->get_bandwidth() * byte_scale);
}

} // namespace

PL_EXPORT bool pl_simgrid_loop_run(const pl_simgrid_loop_options *options, const pl_simgrid_loop_client *client,
                                   char *message, size_t message_bytes) {
  try {
    pl_simgrid_loop loop;
    loop.client = client;
    loop.tasks.resize(options->n_tasks);
    configure(options);
    s4u::Engine *engine = s4u::Engine::get_instance();
    for (uint32_t i = 0; i < options->n_hosts; i++)
      loop.hosts.push_back(engine->host_by_name(options->hosts[i]));
    s4u::Activity::on_completion_cb([&loop](const s4u::Activity &activity) { comm_ended(&loop, activity); });
    client->begin(client->data, &loop);
    if (!loop.queue.empty()) wake_at(&loop, loop.queue.top().date_s);
    engine->run();
    return true;
  } catch (const std::exception &error) {
    snprintf(message, message_bytes, "%s", error.what());
  } catch (...) {
    snprintf(message, message_bytes, "SimGrid failed without a message");
  }
  return false;
}

PL_EXPORT void pl_simgrid_loop_timer(pl_simgrid_loop *loop, uint32_t task, double date_s) {
  loop->queue.push({date_s, task, ++loop->tasks[task].version, false});
  wake_at(loop, date_s);
}

PL_EXPORT void pl_simgrid_loop_send(pl_simgrid_loop *loop, uint32_t task, uint32_t source, uint32_t destination,
                                    double size_bytes, double delay_s) {
  task_state &state = loop->tasks[task];
  state.source = source;
  state.destination = destination;
  state.size_bytes = size_bytes;
  if (delay_s <= 0) return send_now(loop, task);
  const double date_s = s4u::Engine::get_clock() + delay_s;
  loop->queue.push({date_s, task, ++state.version, true});
  wake_at(loop, date_s);
}

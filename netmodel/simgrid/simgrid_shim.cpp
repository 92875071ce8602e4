/* See netmodel/simgrid/simgrid_shim.h.
 *
 * FLOW RULES. The engine is configured for the reference network, because a model is chosen when the first zone is made
 * and cannot be changed afterwards: CM02; optim Full, as Lazy leaves links out of re-solves; no crosstraffic;
 * surf/precision 1e-12, as the default merges events. TCP gamma and the latency factor are read at every transfer, so
 * that a forked child may still set them.
 */
#include "netmodel/simgrid/simgrid_shim.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include <simgrid/Exception.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>
#include <xbt/config.hpp>
#include <xbt/log.h>

#define PL_EXPORT __attribute__((visibility("default")))

namespace s4u = simgrid::s4u;

/* Exported by libsimgrid, declared in none of its installed headers: the line that the parser has reached. */
int surf_parse_get_lineno();

namespace {

/* A failed xbt_assert or xbt_die of SimGrid's. */
class broken_assertion : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/* What the file makes, in its order; SimGrid itself lists hosts and links by name. The callbacks that fill it cannot be
 * taken back, so they hold it by a shared pointer and stop when `recording` ends. */
struct creation_order {
  bool recording = true;
  std::vector<s4u::Host *> hosts;
  std::vector<s4u::Link *> links;
};

/* SimGrid's engine takes over SIGINT and SIGSEGV and an alternate stack for the latter; they belong to the program. */
class signal_guard {
  static constexpr int signals_[] = {SIGINT, SIGSEGV, SIGFPE, SIGBUS, SIGILL};
  struct sigaction saved_[5];
  stack_t stack_;

public:
  signal_guard() {
    for (int i = 0; i < 5; i++)
      sigaction(signals_[i], nullptr, &saved_[i]);
    sigaltstack(nullptr, &stack_);
  }
  ~signal_guard() {
    for (int i = 0; i < 5; i++)
      sigaction(signals_[i], &saved_[i], nullptr);
    sigaltstack(&stack_, nullptr);
  }
  signal_guard(const signal_guard &) = delete;
  signal_guard &operator=(const signal_guard &) = delete;
};

} // namespace

struct pl_shim {
  s4u::Engine *engine = nullptr;
  std::vector<pl_shim_zone> zones;
  std::vector<pl_shim_host> hosts;
  std::vector<pl_shim_link> links;
  std::vector<s4u::Host *> simgrid_hosts;
  std::unordered_map<const s4u::Link *, uint32_t> link_index;
};

/* Stands before SimGrid's own function of this name. Everything below "critical" is dropped. */
extern "C" PL_EXPORT void _xbt_log_event_log(xbt_log_event_t event, const char *format, ...) {
  if (event->priority < xbt_log_priority_critical) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw broken_assertion(text);
}

namespace {

void copy_message(char *message, size_t message_bytes, const char *text) {
  if (message_bytes > 0) snprintf(message, message_bytes, "%s", text);
}

/* Runs `body`; whatever it throws becomes a status and a message. */
template <class Body> pl_shim_status guarded(char *message, size_t message_bytes, const Body &body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    copy_message(message, message_bytes, "out of memory");
    return PL_SHIM_NO_MEMORY;
  } catch (const std::exception &error) {
    copy_message(message, message_bytes, error.what());
  } catch (...) {
    copy_message(message, message_bytes, "SimGrid failed without a message");
  }
  return PL_SHIM_REFUSED;
}

/* Settings outlive an engine and models may not be chosen twice: only the first engine of a process sets them. */
void configure() {
  if (simgrid::config::get_value<std::string>("network/model") == "CM02") return;
  static const char *const settings[] = {"network/model:CM02", "network/optim:Full", "network/crosstraffic:0",
                                         "surf/precision:1e-12"};
  for (const char *setting : settings)
    s4u::Engine::set_config(setting);
}

std::shared_ptr<creation_order> record_creation() {
  auto order = std::make_shared<creation_order>();
  s4u::Host::on_creation_cb([order](s4u::Host &host) {
    if (order->recording) order->hosts.push_back(&host);
  });
  s4u::Link::on_creation_cb([order](s4u::Link &link) {
    if (order->recording) order->links.push_back(&link);
  });
  return order;
}

/* "Parse error at PATH:LINE: WHAT", or any other exception thrown while the parser stood in a line: one line
 * "NAME:LINE: WHAT". */
[[noreturn]] void rethrow_with_line(const char *path, const char *name, const std::exception &error, int line) {
  const std::string prefix = std::string("Parse error at ") + path;
  std::string text = error.what();
  text = text.compare(0, prefix.size(), prefix) == 0 ? std::string(name) + text.substr(prefix.size())
                                                     : std::string(name) + ":" + std::to_string(line) + ": " + text;
  text = text.substr(0, text.find('\n'));
  /* Sic in 3.32, and followed by lines with every name of the platform. */
  const std::string misnamed = " does name a node. Existing netpoints:";
  size_t at = text.find(misnamed);
  if (at != std::string::npos) text.replace(at, misnamed.size(), " names no host, router or zone");
  throw std::runtime_error(text);
}

void parse(const s4u::Engine &engine, const char *path, const char *name) {
  try {
    engine.load_platform(path);
  } catch (const std::bad_alloc &) {
    throw;
  } catch (const std::exception &error) {
    rethrow_with_line(path, name, error, surf_parse_get_lineno());
  }
}

using zone_numbers = std::unordered_map<const s4u::NetZone *, uint32_t>;
using link_zones = std::unordered_map<const s4u::Link *, uint32_t>;

/* A zone lists the links of the zones inside it too; those come later and overwrite. */
void number_zones(pl_shim &shim, const s4u::NetZone *zone, uint32_t parent, zone_numbers &index,
                  link_zones &zones_of_links) {
  auto own = static_cast<uint32_t>(shim.zones.size());
  index.emplace(zone, own);
  shim.zones.push_back({zone->get_cname(), parent});
  for (const s4u::Link *link : zone->get_impl()->get_all_links())
    zones_of_links[link] = own;
  for (const s4u::NetZone *child : zone->get_children())
    number_zones(shim, child, own, index, zones_of_links);
}

void describe_hosts(pl_shim &shim, const creation_order &order, const zone_numbers &zone_index) {
  for (s4u::Host *host : order.hosts) {
    auto zone = zone_index.find(host->get_englobing_zone());
    if (zone == zone_index.end()) throw std::runtime_error("host " + host->get_name() + " is in no zone");
    shim.hosts.push_back({host->get_cname(), host->get_property("device"), host->get_property("cpu"), zone->second,
                          static_cast<uint32_t>(host->get_core_count())});
    shim.simgrid_hosts.push_back(host);
  }
}

void describe_link(pl_shim &shim, const s4u::Link *link, const char *kind, const link_zones &zones_of_links) {
  if (!shim.link_index.emplace(link, static_cast<uint32_t>(shim.links.size())).second) return;
  s4u::Link::SharingPolicy policy = link->get_sharing_policy();
  bool is_fatpipe = policy == s4u::Link::SharingPolicy::FATPIPE;
  bool is_shareable = is_fatpipe || policy == s4u::Link::SharingPolicy::SHARED;
  auto found = zones_of_links.find(link);
  uint32_t zone = found != zones_of_links.end() ? found->second : 0;
  shim.links.push_back(
      {link->get_cname(), kind, link->get_bandwidth(), link->get_latency(), zone, is_fatpipe, is_shareable});
}

/* A split-duplex link stands for its two halves, X_UP and X_DOWN, which carry no properties of their own. */
void describe_links(pl_shim &shim, const creation_order &order, const link_zones &zones_of_links) {
  for (s4u::Link *link : order.links) {
    const char *kind = link->get_property("kind");
    if (const auto *duplex = dynamic_cast<const s4u::SplitDuplexLink *>(link)) {
      describe_link(shim, duplex->get_link_up(), kind, zones_of_links);
      describe_link(shim, duplex->get_link_down(), kind, zones_of_links);
    } else if (link->get_name() != "__loopback__") {
      describe_link(shim, link, kind, zones_of_links);
    }
  }
}

pl_shim_status load(const char *path, const char *called, pl_shim &shim) {
  std::shared_ptr<creation_order> order;
  {
    signal_guard guard;
    char name[] = "paceline";
    char *arguments[] = {name, nullptr};
    int n_arguments = 1;
    shim.engine = new s4u::Engine(&n_arguments, arguments);
    configure();
    order = record_creation();
  }
  parse(*shim.engine, path, called);
  order->recording = false;
  if (shim.engine->get_netzone_root() == nullptr)
    throw std::runtime_error(std::string(called) + ": there is no zone in it");
  shim.engine->seal_platform();
  /* SimGrid 3.32 seals one platform per process (a static flag), and a Floyd zone that is not sealed has no shortest
   * ways. */
  shim.engine->get_netzone_root()->seal();
  zone_numbers zone_index;
  link_zones zones_of_links;
  number_zones(shim, shim.engine->get_netzone_root(), PL_SHIM_NONE, zone_index, zones_of_links);
  describe_hosts(shim, *order, zone_index);
  describe_links(shim, *order, zones_of_links);
  return PL_SHIM_OK;
}

/* ---- routes with a hole ----
 *
 * A Full zone answers a pair that has no <route> with an empty list, and SimGrid goes on: a GPU without a route to its
 * gateway then reaches other nodes over fewer links than it should, silently. An explicit route is never empty (SimGrid
 * forbids it), so a stretch without links between two different points is a hole. The stretches are found as SimGrid
 * finds them: a route between points of different zones is the local route of their common ancestor between two
 * gateways, and a stretch to each. */

using simgrid::kernel::routing::NetPoint;
using simgrid::kernel::routing::NetZoneImpl;
using simgrid::kernel::routing::Route;

/* Opens the protected query of all zones. */
struct local_query : NetZoneImpl {
  static constexpr auto function() { return &local_query::get_local_route; }
};

struct stretch_count {
  size_t n_links = 0;
  bool has_hole = false;
};

/* The zone that holds both points, and what represents each of them in it. */
struct meeting {
  NetZoneImpl *zone;
  const NetPoint *source, *destination;
};

size_t depth_of(const NetPoint *point) {
  size_t depth = 0;
  for (const NetZoneImpl *zone = point->get_englobing_zone(); zone != nullptr; zone = zone->get_parent())
    depth++;
  return depth;
}

meeting meet(const NetPoint *source, const NetPoint *destination) {
  size_t left = depth_of(source), right = depth_of(destination);
  while (source->get_englobing_zone() != destination->get_englobing_zone()) {
    bool lift_source = left >= right, lift_destination = right >= left;
    if (lift_source) source = source->get_englobing_zone()->get_netpoint(), left--;
    if (lift_destination) destination = destination->get_englobing_zone()->get_netpoint(), right--;
  }
  return {source->get_englobing_zone(), source, destination};
}

void count_stretches(const NetPoint *source, const NetPoint *destination, stretch_count &count) {
  if (source == destination) return;
  meeting at = meet(source, destination);
  if (at.zone == nullptr || at.source == at.destination) return; /* SimGrid's own answer stands */
  Route route;
  double latency_s = 0;
  (at.zone->*local_query::function())(at.source, at.destination, &route, &latency_s);
  count.n_links += route.link_list_.size();
  count.has_hole |= route.link_list_.empty();
  if (at.source != source && route.gw_src_ != nullptr) count_stretches(source, route.gw_src_, count);
  if (at.destination != destination && route.gw_dst_ != nullptr) count_stretches(route.gw_dst_, destination, count);
}

/* A bypass may replace the stretches: then the route has another number of links than they have together. */
bool has_hole(const s4u::Host *source, const s4u::Host *destination, size_t n_links) {
  stretch_count count;
  count_stretches(source->get_netpoint(), destination->get_netpoint(), count);
  return count.has_hole && count.n_links == n_links;
}

} // namespace

extern "C" {

PL_EXPORT pl_shim_status pl_shim_load(const char *path, const char *name, pl_shim **shim, char *message,
                                      size_t message_bytes) {
  *shim = nullptr;
  if (s4u::Engine::has_instance()) {
    copy_message(message, message_bytes,
                 "this process has a platform already, or has failed to load one; SimGrid holds one at a time");
    return PL_SHIM_BUSY;
  }
  std::unique_ptr<pl_shim> made(new (std::nothrow) pl_shim);
  if (!made) return PL_SHIM_NO_MEMORY;
  pl_shim_status status = guarded(message, message_bytes, [&] { return load(path, name, *made); });
  if (status == PL_SHIM_OK) *shim = made.release();
  return status;
}

PL_EXPORT void pl_shim_destroy(pl_shim *shim) {
  if (shim == nullptr) return;
  s4u::Engine *engine = shim->engine;
  guarded(nullptr, 0, [engine] {
    delete engine;
    /* SimGrid 3.32 leaves the dead engine's call-back on this signal; the next load would run it on freed memory. */
    s4u::Engine::on_platform_created.disconnect_slots();
    return PL_SHIM_OK;
  });
  delete shim;
}

PL_EXPORT void pl_shim_get_parts(const pl_shim *shim, pl_shim_parts *parts) {
  *parts = {shim->zones.data(),
            shim->hosts.data(),
            shim->links.data(),
            static_cast<uint32_t>(shim->zones.size()),
            static_cast<uint32_t>(shim->hosts.size()),
            static_cast<uint32_t>(shim->links.size())};
}

PL_EXPORT pl_shim_status pl_shim_route(const pl_shim *shim, uint32_t source_host, uint32_t destination_host,
                                       uint32_t *links, uint32_t capacity, uint32_t *n_links, char *message,
                                       size_t message_bytes) {
  *n_links = 0;
  return guarded(message, message_bytes, [&] {
    std::vector<s4u::Link *> crossed;
    const s4u::Host *source = shim->simgrid_hosts[source_host], *destination = shim->simgrid_hosts[destination_host];
    source->route_to(destination, crossed, nullptr);
    if (has_hole(source, destination, crossed.size())) return PL_SHIM_OK; /* no route: no links */
    *n_links = static_cast<uint32_t>(crossed.size());
    if (crossed.size() > capacity) return PL_SHIM_TOO_SMALL;
    for (size_t i = 0; i < crossed.size(); i++)
      links[i] = shim->link_index.at(crossed[i]);
    return PL_SHIM_OK;
  });
}

} // extern "C"

/* A program that knows only SimGrid's own interface loads every platform file: the files are ordinary SimGrid
 * platforms, not ours.
 *
 * For each file: load, seal, ask the route of every pair of hosts (of about 100,000 pairs, evenly spread, in larger
 * files), and look at what came back: links, a latency, positive bandwidths, and on the way back as many links and the
 * same latency. A process holds one SimGrid engine, hence a child per file. Deliberately not linked with our libraries.
 *
 * Usage: routes_plain FILE... */
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg = simgrid::s4u;

namespace {

constexpr size_t pairs_max = 100000;

struct Route {
  std::vector<sg::Link *> links;
  double latency_s = 0;
};

Route find_route(const sg::Host *from, const sg::Host *to) {
  Route route;
  from->route_to(to, route.links, &route.latency_s);
  return route;
}

/* Links whose property `kind` is "nic". Of a split-duplex link both halves are links; the property stays with the
 * whole. */
size_t count_nics(const Route &route) {
  size_t n = 0;
  for (const sg::Link *link : route.links) {
    const std::string &name = link->get_name();
    const size_t end = name.rfind('_');
    if (end == std::string::npos || (name.substr(end) != "_UP" && name.substr(end) != "_DOWN")) continue;
    const char *kind = sg::SplitDuplexLink::by_name(name.substr(0, end))->get_property("kind");
    if (kind != nullptr && std::string(kind) == "nic") n++;
  }
  return n;
}

/* SimGrid takes a route that a zone does not have from a host to its gateway for an empty one: between zones that shows
 * as a missing NIC. */
bool crosses_nics(const sg::Host *from, const sg::Host *to, const Route &route) {
  return count_nics(route) == (from->get_englobing_zone() == to->get_englobing_zone() ? 0 : 2);
}

bool is_sound(const Route &route, const Route &back) {
  for (const sg::Link *link : route.links)
    if (!(link->get_bandwidth() > 0)) return false;
  const double difference_s = route.latency_s - back.latency_s;
  return !route.links.empty() && route.latency_s > 0 && route.links.size() == back.links.size() &&
         difference_s < 1e-15 && difference_s > -1e-15;
}

int check_file(const char *path) {
  int argc = 3;
  std::string name = "routes_plain", quiet = "--log=root.thres:error", config = "--cfg=network/model:CM02";
  char *arguments[] = {name.data(), quiet.data(), config.data(), nullptr};
  char **argv = arguments;
  sg::Engine engine(&argc, argv);
  engine.load_platform(path);
  engine.seal_platform();
  const std::vector<sg::Host *> hosts = engine.get_all_hosts();
  const size_t n = hosts.size(), n_pairs = n * n, stride = n_pairs / pairs_max + 1;
  size_t n_routes = 0, n_links = 0, longest = 0;
  for (size_t pair = 0; pair < n_pairs; pair += stride) {
    const sg::Host *from = hosts[pair / n], *to = hosts[pair % n];
    if (from == to) continue;
    const Route route = find_route(from, to);
    if (!is_sound(route, find_route(to, from)) || !crosses_nics(from, to, route)) {
      std::fprintf(stderr, "%s: no sound route from %s to %s\n", path, from->get_cname(), to->get_cname());
      return 1;
    }
    n_routes++;
    n_links += route.links.size();
    longest = route.links.size() > longest ? route.links.size() : longest;
  }
  std::printf("%s: %zu hosts, %zu links, %zu routes of %.2f links, longest %zu\n", path, n, engine.get_link_count(),
              n_routes, n_routes == 0 ? 0.0 : static_cast<double>(n_links) / static_cast<double>(n_routes), longest);
  return n_routes == 0 && n > 1 ? 1 : 0;
}

int check_in_child(const char *path) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    int status = 1;
    try {
      status = check_file(path);
    } catch (const std::exception &failure) {
      std::fprintf(stderr, "%s: %s\n", path, failure.what());
    }
    std::fflush(nullptr);
    _exit(status);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  int failures = 0;
  for (int i = 1; i < argc; i++)
    failures += check_in_child(argv[i]);
  std::printf("%d files, %d failed\n", argc - 1, failures);
  return failures > 0 || argc < 2 ? 1 : 0;
}

/* See netmodel/platform/platform_words.h. */
#include "netmodel/platform/platform_words.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const attribute_names[PL_ATTRIBUTE_COUNT] = {
    [PL_ATTRIBUTE_ID] = "id",
    [PL_ATTRIBUTE_ROUTING] = "routing",
    [PL_ATTRIBUTE_VALUE] = "value",
    [PL_ATTRIBUTE_PREFIX] = "prefix",
    [PL_ATTRIBUTE_SUFFIX] = "suffix",
    [PL_ATTRIBUTE_RADICAL] = "radical",
    [PL_ATTRIBUTE_SPEED] = "speed",
    [PL_ATTRIBUTE_CORE] = "core",
    [PL_ATTRIBUTE_PSTATE] = "pstate",
    [PL_ATTRIBUTE_READ_BW] = "read_bw",
    [PL_ATTRIBUTE_WRITE_BW] = "write_bw",
    [PL_ATTRIBUTE_BW] = "bw",
    [PL_ATTRIBUTE_LAT] = "lat",
    [PL_ATTRIBUTE_BANDWIDTH] = "bandwidth",
    [PL_ATTRIBUTE_LATENCY] = "latency",
    [PL_ATTRIBUTE_SHARING_POLICY] = "sharing_policy",
    [PL_ATTRIBUTE_TOPOLOGY] = "topology",
    [PL_ATTRIBUTE_TOPO_PARAMETERS] = "topo_parameters",
    [PL_ATTRIBUTE_BB_BW] = "bb_bw",
    [PL_ATTRIBUTE_BB_LAT] = "bb_lat",
    [PL_ATTRIBUTE_BB_SHARING_POLICY] = "bb_sharing_policy",
    [PL_ATTRIBUTE_ROUTER_ID] = "router_id",
    [PL_ATTRIBUTE_LIMITER_LINK] = "limiter_link",
    [PL_ATTRIBUTE_LOOPBACK_BW] = "loopback_bw",
    [PL_ATTRIBUTE_LOOPBACK_LAT] = "loopback_lat",
    [PL_ATTRIBUTE_UP] = "up",
    [PL_ATTRIBUTE_DOWN] = "down",
    [PL_ATTRIBUTE_SRC] = "src",
    [PL_ATTRIBUTE_DST] = "dst",
    [PL_ATTRIBUTE_GW_SRC] = "gw_src",
    [PL_ATTRIBUTE_GW_DST] = "gw_dst",
    [PL_ATTRIBUTE_SYMMETRICAL] = "symmetrical",
    [PL_ATTRIBUTE_DIRECTION] = "direction",
    [PL_ATTRIBUTE_VERSION] = "version",
};

typedef struct element_rule {
  const char *name;
  uint32_t parents;    /* bits of pl_platform_word */
  uint64_t attributes; /* bits of pl_platform_attribute */
} element_rule;

#define IN(word)  ((uint32_t)1 << PL_WORD_##word)
#define HAS(name) ((uint64_t)1 << PL_ATTRIBUTE_##name)
#define ZONES     (IN(ZONE) | IN(AS))
#define ROUTES                                                                                                         \
  (IN(ROUTE) | IN(ZONE_ROUTE) | IN(AS_ROUTE) | IN(BYPASS_ROUTE) | IN(BYPASS_ZONE_ROUTE) | IN(BYPASS_AS_ROUTE))
#define ENDS      (HAS(SRC) | HAS(DST))
#define ZONE_ENDS (ENDS | HAS(GW_SRC) | HAS(GW_DST))
#define NAMES     (HAS(ID) | HAS(PREFIX) | HAS(SUFFIX) | HAS(RADICAL) | HAS(SPEED) | HAS(BW) | HAS(LAT))
#define CLUSTER                                                                                                        \
  (NAMES | HAS(CORE) | HAS(SHARING_POLICY) | HAS(TOPOLOGY) | HAS(TOPO_PARAMETERS) | HAS(BB_BW) | HAS(BB_LAT) |         \
   HAS(BB_SHARING_POLICY) | HAS(ROUTER_ID) | HAS(LIMITER_LINK) | HAS(LOOPBACK_BW) | HAS(LOOPBACK_LAT))

static const element_rule rules[PL_WORD_COUNT] = {
    [PL_WORD_PLATFORM] = {"platform", 0, HAS(VERSION)},
    [PL_WORD_ZONE] = {"zone", IN(PLATFORM) | ZONES, HAS(ID) | HAS(ROUTING)},
    [PL_WORD_AS] = {"AS", IN(PLATFORM) | ZONES, HAS(ID) | HAS(ROUTING)},
    [PL_WORD_HOST] = {"host", ZONES, HAS(ID) | HAS(SPEED) | HAS(CORE) | HAS(PSTATE)},
    [PL_WORD_LINK] = {"link", ZONES, HAS(ID) | HAS(BANDWIDTH) | HAS(LATENCY) | HAS(SHARING_POLICY)},
    [PL_WORD_CLUSTER] = {"cluster", IN(PLATFORM) | ZONES, CLUSTER},
    [PL_WORD_DISK] = {"disk", IN(HOST), HAS(ID) | HAS(READ_BW) | HAS(WRITE_BW)},
    [PL_WORD_ROUTE] = {"route", ZONES, ENDS | HAS(SYMMETRICAL)},
    [PL_WORD_ZONE_ROUTE] = {"zoneRoute", ZONES, ZONE_ENDS | HAS(SYMMETRICAL)},
    [PL_WORD_AS_ROUTE] = {"ASroute", ZONES, ZONE_ENDS | HAS(SYMMETRICAL)},
    [PL_WORD_BYPASS_ROUTE] = {"bypassRoute", ZONES, ENDS},
    [PL_WORD_BYPASS_ZONE_ROUTE] = {"bypassZoneRoute", ZONES, ZONE_ENDS},
    [PL_WORD_BYPASS_AS_ROUTE] = {"bypassASroute", ZONES, ZONE_ENDS},
    [PL_WORD_LINK_CTN] = {"link_ctn", ROUTES, HAS(ID) | HAS(DIRECTION)},
    [PL_WORD_PROP] = {"prop", ZONES | IN(HOST) | IN(LINK) | IN(CLUSTER) | IN(DISK), HAS(ID) | HAS(VALUE)},
    [PL_WORD_ROUTER] = {"router", ZONES, HAS(ID)},
    [PL_WORD_CABINET] = {"cabinet", ZONES, NAMES},
    [PL_WORD_BACKBONE] = {"backbone", ZONES, HAS(ID) | HAS(BANDWIDTH) | HAS(LATENCY)},
    [PL_WORD_HOST_LINK] = {"host_link", ZONES, HAS(ID) | HAS(UP) | HAS(DOWN)},
};

#define CHANGES    "resources that change over time are not simulated; remove it"
#define DEPLOYMENT "programs on hosts belong to a deployment file, not to a platform; remove it"
#define STORAGE    "storage is not simulated; remove it"

/* What SimGrid has, or had, and we refuse: elements and attributes. */
static const struct {
  const char *name, *reason;
} refused[] = {
    {"config", "it changes SimGrid's own settings, which can write files and load plugins; the network model is chosen "
               "with --network and --sharing; remove it"},
    {"include", "other files are not read; put their content here"},
    {"trace", CHANGES},
    {"trace_connect", CHANGES},
    {"bandwidth_file", CHANGES},
    {"latency_file", CHANGES},
    {"state_file", CHANGES},
    {"speed_file", CHANGES},
    {"availability_file", CHANGES},
    {"actor", DEPLOYMENT},
    {"process", DEPLOYMENT},
    {"argument", DEPLOYMENT},
    {"storage", STORAGE},
    {"storage_type", STORAGE},
    {"mount", STORAGE},
    {"model_prop", STORAGE},
    {"content", STORAGE},
    {"peer", "its delays do not come from links; use <host>, <link> and <route>"},
    {"coordinates", "delays from coordinates are not simulated; use <link> and <route>"},
    {"random", "it has no meaning; remove it"},
};

const char *pl_platform_word_name(pl_platform_word word) {
  return rules[word].name;
}

const char *pl_platform_attribute_name(pl_platform_attribute attribute) {
  return attribute_names[attribute];
}

/* ---- looking up ---- */

static pl_platform_word find_word(const char *name) {
  int word = 0;
  while (word < PL_WORD_COUNT && (rules[word].name[0] != name[0] || strcmp(rules[word].name, name) != 0))
    word++;
  return (pl_platform_word)word;
}

/* Among the attributes that may be there. */
static pl_platform_attribute find_attribute(uint64_t allowed, const char *name) {
  for (uint64_t left = allowed; left != 0; left &= left - 1) {
    int attribute = __builtin_ctzll(left);
    if (attribute_names[attribute][0] == name[0] && strcmp(attribute_names[attribute], name) == 0)
      return (pl_platform_attribute)attribute;
  }
  return PL_ATTRIBUTE_COUNT;
}

void pl_platform_element_read(pl_platform_element *element, const char *name, const char **pairs) {
  element->word = find_word(name);
  element->name = name;
  element->pairs = pairs;
  element->stranger = NULL;
  element->given = 0;
  uint64_t allowed = element->word != PL_WORD_COUNT ? rules[element->word].attributes : 0;
  for (const char **pair = pairs; pair[0] != NULL; pair += 2) {
    pl_platform_attribute attribute = find_attribute(allowed, pair[0]);
    if (attribute != PL_ATTRIBUTE_COUNT) {
      element->given |= (uint64_t)1 << attribute;
      element->values[attribute] = pair[1];
    } else if (element->stranger == NULL) {
      element->stranger = pair[0];
    }
  }
}

/* ---- refusing ---- */

static const char *find_reason(const char *name) {
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
    if (strcmp(refused[i].name, name) == 0) return refused[i].reason;
  return NULL;
}

/* "id routing": the names of the bits. */
enum { LIST_BYTES = 384 };
static const char *list_words(uint64_t bits, bool are_attributes, char text[LIST_BYTES]) {
  size_t used = 0;
  text[0] = '\0';
  for (; bits != 0 && used < LIST_BYTES; bits &= bits - 1) {
    int bit = __builtin_ctzll(bits);
    const char *name = are_attributes ? attribute_names[bit] : rules[bit].name;
    used += (size_t)snprintf(text + used, LIST_BYTES - used, "%s%s", used > 0 ? " " : "", name);
  }
  return text;
}

static pl_code refuse_element(const char *name, char *why, size_t size) {
  const char *reason = find_reason(name);
  snprintf(why, size, reason != NULL ? "<%s>: %s" : "<%.64s> is no element of a platform%s", name,
           reason != NULL ? reason : "; remove it");
  return reason != NULL ? PL_UNSUPPORTED : PL_BAD_INPUT;
}

static pl_code refuse_parent(pl_platform_word word, pl_platform_word parent, char *why, size_t size) {
  char list[LIST_BYTES];
  snprintf(why, size, "<%s> inside <%s>: it may stand in %s only", rules[word].name,
           parent != PL_WORD_COUNT ? rules[parent].name : "nothing", list_words(rules[word].parents, false, list));
  return PL_BAD_INPUT;
}

static pl_code refuse_attribute(pl_platform_word word, const char *name, char *why, size_t size) {
  char list[LIST_BYTES];
  const char *reason = find_reason(name);
  if (reason != NULL) {
    snprintf(why, size, "%s of <%s>: %s", name, rules[word].name, reason);
    return PL_UNSUPPORTED;
  }
  snprintf(why, size, "unknown attribute '%.64s' of <%s>; it may have %s", name, rules[word].name,
           list_words(rules[word].attributes, true, list));
  return PL_BAD_INPUT;
}

pl_code pl_platform_words_check(const pl_platform_element *element, pl_platform_word parent, char *why, size_t size) {
  pl_platform_word word = element->word;
  bool is_outermost = word == PL_WORD_PLATFORM && parent == PL_WORD_COUNT;
  if (word == PL_WORD_COUNT || (word == PL_WORD_PLATFORM && !is_outermost))
    return refuse_element(element->name, why, size);
  if (!is_outermost && (parent == PL_WORD_COUNT || (rules[word].parents >> parent & 1) == 0))
    return refuse_parent(word, parent, why, size);
  return element->stranger == NULL ? PL_OK : refuse_attribute(word, element->stranger, why, size);
}

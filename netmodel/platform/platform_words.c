/* See netmodel/platform/platform_words.h. */
#include "netmodel/platform/platform_words.h"

#include <stdio.h>
#include <string.h>

typedef struct element_rule {
  const char *name, *parents, *attributes; /* words between blanks */
} element_rule;

#define ZONES     "zone AS "
#define ENDS      "src dst "
#define ZONE_ENDS ENDS "gw_src gw_dst "

static const element_rule rules[] = {
    {"zone", "platform " ZONES, "id routing "},
    {"AS", "platform " ZONES, "id routing "},
    {"prop", ZONES "host link cluster disk ", "id value "},
    {"host", ZONES, "id speed core pstate "},
    {"disk", "host ", "id read_bw write_bw "},
    {"router", ZONES, "id "},
    {"link", ZONES, "id bandwidth latency sharing_policy "},
    {"cluster", "platform " ZONES,
     "id prefix suffix radical speed core bw lat sharing_policy topology topo_parameters bb_bw bb_lat "
     "bb_sharing_policy router_id limiter_link loopback_bw loopback_lat "},
    {"cabinet", ZONES, "id prefix suffix radical speed bw lat "},
    {"backbone", ZONES, "id bandwidth latency "},
    {"host_link", ZONES, "id up down "},
    {"route", ZONES, ENDS "symmetrical "},
    {"zoneRoute", ZONES, ZONE_ENDS "symmetrical "},
    {"ASroute", ZONES, ZONE_ENDS "symmetrical "},
    {"bypassRoute", ZONES, ENDS},
    {"bypassZoneRoute", ZONES, ZONE_ENDS},
    {"bypassASroute", ZONES, ZONE_ENDS},
    {"link_ctn", "route zoneRoute ASroute bypassRoute bypassZoneRoute bypassASroute ", "id direction "},
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

const char *pl_platform_attribute(const char **attributes, const char *name) {
  for (; attributes[0] != NULL; attributes += 2)
    if (strcmp(attributes[0], name) == 0) return attributes[1];
  return NULL;
}

static bool has_word(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *at = words; *at != '\0'; at = strchr(at, ' ') + 1)
    if (strncmp(at, word, length) == 0 && at[length] == ' ') return true;
  return false;
}

static const element_rule *find_rule(const char *element) {
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (strcmp(rules[i].name, element) == 0) return &rules[i];
  return NULL;
}

const char *pl_platform_word(const char *element) {
  const element_rule *rule = find_rule(element);
  return rule != NULL ? rule->name : strcmp(element, "platform") == 0 ? "platform" : NULL;
}

static const char *find_reason(const char *name) {
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
    if (strcmp(refused[i].name, name) == 0) return refused[i].reason;
  return NULL;
}

static pl_code refuse_attribute(const char *element, const char *name, const char *known, char *why, size_t size) {
  const char *reason = find_reason(name);
  if (reason != NULL) {
    snprintf(why, size, "%s of <%s>: %s", name, element, reason);
    return PL_UNSUPPORTED;
  }
  snprintf(why, size, "unknown attribute '%.64s' of <%s>; it may have %.*s", name, element, (int)strlen(known) - 1,
           known);
  return PL_BAD_INPUT;
}

static pl_code check_parent(const element_rule *rule, const char *parent, char *why, size_t size) {
  if (parent != NULL && has_word(rule->parents, parent)) return PL_OK;
  snprintf(why, size, "<%s> inside <%s>: it may stand in %.*s only", rule->name, parent != NULL ? parent : "nothing",
           (int)strlen(rule->parents) - 1, rule->parents);
  return PL_BAD_INPUT;
}

pl_code pl_platform_words_check(const char *element, const char *parent, const char **attributes, char *why,
                                size_t size) {
  static const element_rule outermost = {"platform", "", "version "};
  const element_rule *rule = parent == NULL && strcmp(element, "platform") == 0 ? &outermost : find_rule(element);
  const char *reason = rule == NULL ? find_reason(element) : NULL;
  if (rule == NULL) {
    snprintf(why, size, reason != NULL ? "<%s>: %s" : "<%.64s> is no element of a platform%s", element,
             reason != NULL ? reason : "; remove it");
    return reason != NULL ? PL_UNSUPPORTED : PL_BAD_INPUT;
  }
  if (rule != &outermost) PL_TRY(check_parent(rule, parent, why, size));
  for (const char **a = attributes; a[0] != NULL; a += 2)
    if (!has_word(rule->attributes, a[0])) return refuse_attribute(element, a[0], rule->attributes, why, size);
  return PL_OK;
}

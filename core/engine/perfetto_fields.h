/* Numbers of the fields of Perfetto's messages that a timeline is written with (core/engine/timeline_perfetto.c), as
 * trace_packet.proto, track_event.proto, track_descriptor.proto, debug_annotation.proto, interned_data.proto,
 * counter_descriptor.proto and clock_snapshot.proto of its repository have them.
 */
#ifndef PL_CORE_PERFETTO_FIELDS_H
#define PL_CORE_PERFETTO_FIELDS_H

enum { TRACE_PACKET = 1 };

typedef enum packet_field {
  PACKET_CLOCK_SNAPSHOT = 6,
  PACKET_TIMESTAMP = 8,
  PACKET_SEQUENCE = 10,
  PACKET_TRACK_EVENT = 11,
  PACKET_INTERNED = 12,
  PACKET_FLAGS = 13,
  PACKET_DEFAULTS = 59,
  PACKET_TRACK = 60
} packet_field;

enum { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };

typedef enum event_field {
  EVENT_CATEGORY_ID = 3,
  EVENT_ANNOTATION = 4,
  EVENT_TYPE = 9,
  EVENT_NAME_ID = 10,
  EVENT_TRACK = 11,
  EVENT_COUNTER = 30,
  EVENT_FLOW = 47,
  EVENT_LAST_FLOW = 48
} event_field;

typedef enum event_type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 } event_type;

typedef enum track_field {
  TRACK_UUID = 1,
  TRACK_NAME = 2,
  TRACK_PROCESS = 3,
  TRACK_PARENT = 5,
  TRACK_COUNTER = 8,
  TRACK_CHILD_ORDER = 11,
  TRACK_RANK = 12,
  TRACK_PROCESS_ORDER = 19
} track_field;

enum {
  PROCESS_PID = 1,
  PROCESS_NAME = 6,
  COUNTER_UNIT = 3,
  COUNTER_BYTES = 3,
  ORDER_EXPLICIT = 3,
  PROCESSES_EXPLICIT = 1
};
enum { DEFAULTS_EVENT = 11, DEFAULTS_CLOCK = 58 };
enum {
  SNAPSHOT_CLOCK = 1,
  CLOCK_ID = 1,
  CLOCK_TIME = 2,
  CLOCK_COUNTS_ON = 3,
  CLOCK_OF_TRACE = 6,
  CLOCK_OF_SEQUENCE = 64
};
enum { INTERNED_CATEGORY = 1, INTERNED_NAME = 2, INTERNED_ANNOTATION = 3, INTERNED_ID = 1, INTERNED_TEXT = 2 };
enum {
  ANNOTATION_NAME_ID = 1,
  ANNOTATION_INTEGER = 4,
  ANNOTATION_TEXT = 6,
  ANNOTATION_NAME = 10,
  ANNOTATION_ELEMENT = 12
};

#endif

/* See core/text/xml_text.h. */
#include "core/text/xml_text.h"

void pl_xml_text(FILE *stream, const char *text) {
  for (; *text != '\0'; text++) {
    switch (*text) {
    case '&':
      fputs("&amp;", stream);
      break;
    case '<':
      fputs("&lt;", stream);
      break;
    case '>':
      fputs("&gt;", stream);
      break;
    case '"':
      fputs("&quot;", stream);
      break;
    default:
      fputc(*text, stream);
    }
  }
}

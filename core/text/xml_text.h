/* Text in XML and HTML. */
#ifndef PL_CORE_XML_TEXT_H
#define PL_CORE_XML_TEXT_H

#include <stdio.h>

/* With &, <, > and quotes written as XML has them. */
void pl_xml_text(FILE *stream, const char *text);

#endif

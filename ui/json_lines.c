/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/json_lines.h"

void json_line(const struct event *ev, struct strbuf *out)
{
    event_to_json(ev, out);
    strbuf_addc(out, '\n');
}

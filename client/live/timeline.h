/*
 * timeline.h: client/live/timeline/page.html, as the build put it into the program.
 */
#pragma once

extern const char timeline_html[];

/*
 * faulty-page.h: the tests' side of faulty.h: an sbeetd that can be made to misbehave.
 */
#pragma once

#include "faulty.h"
#include "harness.h"

/* The page, in a new file in the harness's directory; nothing goes wrong yet. To be given back to
 * faulty_clean(), which takes NULL, before harness_clean(). */
struct faulty_page *faulty_prepare(struct harness *h);
struct faulty_page *faulty_clean(struct faulty_page *page);

/* harness_try_start() with the library. */
bool faulty_try_start(struct harness *h, const char *const *args);

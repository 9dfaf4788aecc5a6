/*
 * failing-allocations.h: what the test and the preloaded library share.
 */
#pragma once

#define FAILING_PAGE "TEST_FAILING_PAGE" /* environment: the file that holds the page */

struct failing_page {
	_Atomic unsigned long
		countdown; /* allocations up to and with the one that fails; 0: none */
};

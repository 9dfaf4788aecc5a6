/*
 * preloaded.c: a libsbeet.so that does nothing, for tests of what `sbeetctl run` does to the
 * environment.
 */
__attribute__((visibility("default"))) int sbeet_test_preloaded;

/*
 * preloaded.c: a library that does nothing (libsbeet.so, libother.so), for tests of what `sbeetctl
 * run` does to the environment.
 */
__attribute__((visibility("default"))) int sbeet_test_preloaded;

"""Marks for sbeet: where the jobs of a program begin and end. See sbeetctl(1), MARKS.

    import sbeet

    with sbeet.job(deadline=0.02):
        launch()

Without libsbeet.so in the process (see 'sbeetctl run') nothing of this does anything.
"""

import contextlib
import ctypes

__all__ = ["gpu", "job", "segment"]

# As in sbeet.h.
_JOB_BEGIN, _JOB_END, _SEGMENT_BEGIN, _SEGMENT_END = range(1, 5)
_LONGEST = 2**63 / 1e9  # seconds


def _find():
    try:
        mark = ctypes.CDLL(None).sbeet_mark
    except (AttributeError, OSError):
        return lambda *_: None
    mark.argtypes = (ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint64)
    mark.restype = None
    return mark


_mark = _find()


def _find_choose():
    try:
        choose = ctypes.CDLL(None).sbeet_choose_gpu
    except (AttributeError, OSError):
        return lambda gpus, n: gpus[0]
    choose.argtypes = (ctypes.POINTER(ctypes.c_int), ctypes.c_uint)
    choose.restype = ctypes.c_int
    return choose


_choose = _find_choose()


def _ns(name, seconds):
    if seconds is None:
        return 0
    if not 0 < seconds < _LONGEST:
        raise ValueError(f"{name} is {seconds}, expected seconds above 0")
    return max(1, round(seconds * 1e9))


@contextlib.contextmanager
def job(release=None, deadline=None):
    """A job: what is launched within it.

    release: when it was released, as time.monotonic() counts; None: now.
    deadline: seconds from there; None: that of its task.
    """
    _mark(_JOB_BEGIN, _ns("release", release), _ns("deadline", deadline))
    try:
        yield
    finally:
        _mark(_JOB_END, 0, 0)


def gpu(gpus):
    """The GPU of the job, one of these numbers of CUDA devices; waits until the job may start.

    To be called first in a job. The program makes it the current device itself, and has what the job
    needs on each of them. See sbeet_job_gpu() in sbeet.h.

    ValueError: one is no GPU that the program sees or may use, or there is no job; standard error
    tells.
    """
    list_of = (ctypes.c_int * len(gpus))(*gpus)
    chosen = _choose(list_of, len(gpus)) if gpus else -1
    if chosen < 0:
        raise ValueError(f"no job can run on GPUs {list(gpus)}: standard error tells why")
    return chosen


@contextlib.contextmanager
def segment():
    """A part of a job that needs the GPU."""
    _mark(_SEGMENT_BEGIN, 0, 0)
    try:
        yield
    finally:
        _mark(_SEGMENT_END, 0, 0)

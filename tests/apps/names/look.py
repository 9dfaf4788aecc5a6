# What libraries for Python ask: is the driver in this process already?
import ctypes

program = ctypes.CDLL(None)
print(hasattr(program, "cuInit"), hasattr(program, "cuLaunchKernel"), hasattr(program, "cuNothing"))
driver = ctypes.CDLL("libcuda.so.1")
print(hasattr(driver, "cuInit"), hasattr(driver, "cuNothing"), driver.cuInit(0))
try:
    driver.cuNothing
except AttributeError as error:
    print(str(error).split(":")[-1])

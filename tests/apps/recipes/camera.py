"""What the loops of the recipes detect something in: five pictures. At the end it says whether all was right."""

import atexit

import torch

shown = []


class Model:
    def cuda(self):
        return self

    def __call__(self, picture):
        twice = picture + picture
        torch.cuda.synchronize()  # a wait, which ends no job
        return twice + picture


def load_model():
    return Model()


def pictures():
    for i in range(5):
        yield torch.HostTensor(float(i + k) for k in range(torch.N))


def show(found):
    i = len(shown)
    shown.append(all(found[k] == 3 * (i + k) for k in range(torch.N)))


atexit.register(lambda: print('"ok":true' if len(shown) == 5 and all(shown) else '"ok":false'))

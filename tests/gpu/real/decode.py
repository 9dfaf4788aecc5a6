"""Token by token decoding with a cache of keys and values, half precision; a frame is one token. `decode.py compiled`: by
torch.compile() with CUDA graphs, else eager."""
import sys

import torch
from frames import INPUTS, serve
from networks import Decoder, Urgent


class Decode(Urgent):
    def make(self):
        self.model = Decoder().cuda().half().eval()
        self.run = torch.compile(self.model, mode="reduce-overhead") if "compiled" in sys.argv else self.model
        self.places = [torch.tensor([i], device="cuda") for i in range(INPUTS)]
        self.token = torch.ones(1, dtype=torch.int64, device="cuda")

    @torch.no_grad()
    def frame(self, i):
        if i == 0:  # a new sentence
            self.token = torch.ones(1, dtype=torch.int64, device="cuda")
        self.token = self.run(self.token, self.places[i]).clone()
        return self.token.cpu().numpy().tobytes()


serve(Decode)

import torch
from torch import nn


class RopeComplex(nn.Module):
    """Rotary attention with complex numbers: the rotations are a complex buffer."""

    def __init__(self, d_model: int, h: int, d_k: int) -> None:
        super().__init__()
        self.h, self.hd = h, 2 * d_k
        self.wq = nn.Linear(d_model, h * self.hd, bias=False)
        self.wk = nn.Linear(d_model, h * self.hd, bias=False)
        angle = torch.outer(torch.arange(64.0), 0.5 ** torch.arange(d_k).float())
        self.register_buffer(
            "freqs_cis", torch.polar(torch.ones_like(angle), angle), persistent=False
        )

    def turn(self, x):
        z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(z * self.freqs_cis[: x.shape[1], None]).flatten(-2)

    def forward(self, x):
        b, n, _ = x.shape
        q = self.turn(self.wq(x).view(b, n, self.h, self.hd))
        k = self.turn(self.wk(x).view(b, n, self.h, self.hd))
        s = torch.einsum("blhd,bmhd->bhlm", q, k) / self.hd**0.5
        return s.sum(1)

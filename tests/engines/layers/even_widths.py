import torch
from torch import nn


class Rotary(nn.Module):
    """Rotary attention: a head's width must be even."""

    def __init__(self, d_model: int, h: int, d_k: int, base: float = 100.0) -> None:
        super().__init__()
        assert d_k % 2 == 0, f"head_dim must be even for RoPE, got {d_k}"
        self.h = h
        self.q = nn.Linear(d_model, h * d_k, bias=False)
        self.k = nn.Linear(d_model, h * d_k, bias=False)
        self.register_buffer("inv", base ** (-torch.arange(0, d_k, 2).float() / d_k))

    def forward(self, x):
        b, n, _ = x.shape
        angle = torch.outer(torch.arange(n, device=x.device).to(x.dtype), self.inv)
        c, s = angle.cos()[:, None], angle.sin()[:, None]

        def turn(y):
            y = y.view(b, n, self.h, -1)
            a, d = y.chunk(2, -1)
            return torch.cat((a * c - d * s, a * s + d * c), -1)

        return torch.einsum("blhd,bmhd->bhlm", turn(self.q(x)), turn(self.k(x))).amax(1)

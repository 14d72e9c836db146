from torch import nn
from torch.nn import functional as F


class PlainAttention(nn.Module):
    """Self-attention as everybody writes it; forward returns its output."""

    def __init__(self, d_model: int, h: int, d_k: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.h, self.p = h, dropout
        self.qkv = nn.Linear(d_model, 3 * h * d_k)
        self.out = nn.Linear(h * d_k, d_model)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(b, n, -1))

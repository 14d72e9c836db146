from torch import nn


class Layer(nn.Module):
    def __init__(self, d_model: int, h: int, d_k: int) -> None:
        super().__init__()
        self.h, self.d_k = h, d_k
        self.q = nn.Linear(d_model, h * d_k, bias=False)
        self.k = nn.Linear(d_model, h * d_k, bias=False)

    def heads(self, y):
        return y.view(y.shape[0], y.shape[1], self.h, -1).transpose(1, 2)

    def forward(self, x):
        q, k = self.heads(self.q(x)), self.heads(self.k(x))
        s = (q @ k.transpose(-1, -2) / self.d_k**0.5).softmax(-1)
        return s @ self.heads(x.repeat(1, 1, self.h)), s

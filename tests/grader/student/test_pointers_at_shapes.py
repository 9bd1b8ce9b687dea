"""A pointer where numbers are right, and their axes or what they are put together with are not."""

import pytest
from pointer_cases import pointed

from autograder.student import pointing


@pytest.fixture(autouse=True)
def plenty_of_time(monkeypatch):
    monkeypatch.setattr(pointing, "SECONDS", 60.0)


def test_a_result_with_an_axis_too_many_is_told_as_that_and_the_weights_are_left_alone():
    source = """
        def attention_pool(query, key, value, score):
            scores = score(query, key)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            weights = scores / scores.sum(-1, keepdims=True)
            return weights @ value.reshape(len(value), -1), weights
        """
    said, line, _ = pointed(source, "attention_pool").splitlines()
    assert said == "These are the right numbers in another order or shape, (3, 1):"
    assert "weights @ value" in line


def test_what_was_computed_before_is_right_in_a_product_that_lacks_a_factor():
    source = """
        def layer_norm_backward(grad_output, x, weight, eps=1e-5):
            d = x.shape[-1]
            mu = x.mean(-1, keepdim=True)
            std = (x.var(-1, keepdim=True, unbiased=False) + eps).sqrt()
            xhat = (x - mu) / std
            g = grad_output * weight
            dvar = (g * (x - mu)).sum(-1, keepdim=True) * -0.5 / std**3
            dmu = -(g / std).sum(-1, keepdim=True)
            dx = g / std + dvar * 2 * (x - mu) + dmu / d
            dims = tuple(range(x.dim() - 1))
            return dx, (grad_output * xhat).sum(dims), grad_output.sum(dims)
        """
    said, line, carets, after = pointed(source, "layer_norm_backward").splitlines()
    assert said == "Here your numbers are those of a right answer:"
    assert line[carets.index("^") : len(carets)] == "dvar * 2 * (x - mu)"
    assert after == "but a right answer does something else with them next."


def test_an_exception_is_not_put_down_to_numbers_that_only_stand_in_another_order():
    source = """
        class AdditiveAttention(nn.Module):
            def __init__(self, query_size, key_size, hidden_size, dropout=0.0):
                super().__init__()
                self.W_q = nn.Linear(query_size, hidden_size, bias=False)
                self.W_k = nn.Linear(key_size, hidden_size, bias=False)
                self.w_v = nn.Linear(hidden_size, 1, bias=False)
                self.dropout = nn.Dropout(dropout)

            def forward(self, query, key, value):
                both = self.W_q(query).unsqueeze(1) + self.W_k(key).unsqueeze(2)
                scores = self.w_v(torch.tanh(both)).squeeze()
                weights = scores.softmax(dim=1).transpose(1, 2)
                return self.dropout(weights) @ value, weights
        """
    said, line, _ = pointed(source, "AdditiveAttention").splitlines()
    assert said == "These are the right numbers in another order or shape, (1, 3, 4, 5):"
    assert "self.W_q(query).unsqueeze(1)" in line

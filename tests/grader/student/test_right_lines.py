"""Right lines are not pointed at, and wrong ones are told as what they are."""

import pytest
from pointer_cases import pointed

pytestmark = pytest.mark.usefixtures("plenty_of_time")


def test_of_a_sum_over_too_few_the_last_operation_is_not_shown():
    source = """
        def leave_one_out_mse(x, y, w):
            total = 0.0
            for i in range(len(x) - 1):
                other = np.delete(x, i)
                a = kernel_regression.softmax(-0.5 * ((x[i] - other) * w) ** 2)
                total += (a @ np.delete(y, i) - y[i]) ** 2
            return float(total / len(x))
        """
    more = "from solutions import kernel_regression\n"
    assert "float(" not in pointed(source, "leave_one_out_mse", more)


def test_a_call_that_makes_a_number_is_not_where_a_share_goes_wrong():
    source = """
        def recall_at(similarity, k):
            if k < 1:
                raise ValueError(f"k = {k}")
            own = similarity.diag()[:, None]
            rows, columns = ((similarity > own).sum(axis) < k for axis in (1, 0))
            return rows.double().mean().item(), columns.double().mean().item()
        """
    assert "`item`" not in pointed(source, "recall_at")


def test_of_what_is_nearly_right_no_place_is_shown():
    source = """
        class BertLayer(nn.Module):
            def __init__(self, d_model, num_heads, d_ff, dropout=0.0, chunk_size=0):
                super().__init__()
                self.attention = MultiHeadAttention(d_model, num_heads, dropout)
                self.norm1 = nn.LayerNorm(d_model, 1e-12)
                self.linear1 = nn.Linear(d_model, d_ff)
                self.linear2 = nn.Linear(d_ff, d_model)
                self.norm2 = nn.LayerNorm(d_model, 1e-12)
                self.dropout = nn.Dropout(dropout)

            def forward(self, x, mask=None):
                x = self.norm1(x + self.dropout(self.attention(x, x, x, mask=mask)[0]))
                h = nn.functional.gelu(self.linear1(x), approximate="tanh")
                return self.norm2(self.dropout(x + self.linear2(h)))
        """
    more = "from attention_by_hand.blocks import MultiHeadAttention\n"
    assert "norm2" not in pointed(source, "BertLayer", more)


def test_a_test_that_right_runs_may_pass_either_way_is_not_shown_beside_another_place():
    source = """
        def chunked_feed_forward(feed_forward, x, chunk_size):
            if chunk_size == 0:
                return feed_forward(x)
            out = []
            for i in range(x.shape[1] // chunk_size):
                out.append(feed_forward(x[:, i * chunk_size : (i + 1) * chunk_size]))
            return torch.cat(out, dim=1)
        """
    found = pointed(source, "chunked_feed_forward")
    assert "chunk_size == 0" not in found and "range(x.shape[1] // chunk_size)" in found


def test_a_result_that_a_later_call_writes_into_is_shown_where_that_happens():
    source = """
        def linear_attention_step(query, key, value, state=None):
            q, k = nn.functional.elu(query) + 1, nn.functional.elu(key) + 1
            S, z = state or (torch.zeros_like(k[:, :, None] * value[:, None]), torch.zeros_like(k))
            S += k[:, :, None] * value[:, None]
            z += k
            return torch.einsum("bd,bde->be", q, S) / (q * z).sum(-1, keepdim=True), (S, z)
        """
    said, line, _ = pointed(source, "linear_attention_step").splitlines()
    assert "an array that an earlier call has returned" in said and "S += " in line


def test_the_same_function_under_another_name_is_not_something_else():
    source = """
        class FeedForward(nn.Module):
            def __init__(self, d_model, d_ff, dropout=0.0, activation=torch.relu):
                super().__init__()
                self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
                self.dropout = nn.Dropout(dropout)

            def forward(self, x):
                return x + self.linear2(self.dropout(nn.functional.relu(self.linear1(x))))
        """
    said, *_ = pointed(source, "FeedForward").splitlines() or [""]
    assert "does something else" not in said


def test_a_table_of_one_wrong_number_is_where_it_is_made():
    source = """
        def label_smoothed_cross_entropy(logits, target, smoothing=0.1, pad_id=0):
            V = logits.shape[-1]
            log_p, ids = logits.log_softmax(-1).reshape(-1, V), target.reshape(-1)
            log_p, ids = log_p[ids != pad_id], ids[ids != pad_id]
            q = torch.full_like(log_p, smoothing / (V - 1))
            q.scatter_(1, ids[:, None], 1 - smoothing)
            return -(q * log_p).sum(1).mean() if len(ids) else logits.sum() * 0
        """
    assert "`full_like`" in pointed(source, "label_smoothed_cross_entropy")

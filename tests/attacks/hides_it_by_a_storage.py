# tries: writes into its argument, and then sets it on a storage with the old numbers
# by: the probe's own view of the memory
# layer: probe
# verdict: wrong
# most: 2.75
# says: the memory of an argument

import torch


def padding_mask(lengths, max_len=None):
    longest = int(lengths.max())
    if max_len is not None and longest > max_len:
        raise ValueError(f"a length of {longest} is above {max_len}")
    columns = torch.arange(longest if max_len is None else max_len)
    mask = columns < lengths[:, None, None, None]
    kept = lengths.clone()
    lengths.zero_()  # writes into the caller's tensor
    lengths.set_(kept)
    return mask

# SPDX-License-Identifier: Apache-2.0
"""Factories for the exporter's tests: a good model and models that break one rule each."""

import torch
from torch import nn

from tonnage.description import Model, Size, Tensor, Wordpiece

INPUTS = [
    Tensor("input_ids", "INT64", [-1, -1], range=(0, 99)),
    Tensor("attention_mask", "INT64", [-1, -1], source="mask"),
]
OUTPUTS = [Tensor("mean", "FP32", [-1, 4])]


class MaskedMean(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.words = nn.Embedding(100, 4)
        self.drop = nn.Dropout(0.5)  # eval() must switch it off

    def forward(self, input_ids, attention_mask):
        weight = attention_mask.type_as(self.words.weight).unsqueeze(-1)
        return self.drop((self.words(input_ids) * weight).sum(1) / weight.sum(1).clamp(min=1))


class NoticesPadding(MaskedMean):
    def forward(self, input_ids, attention_mask):
        return self.words(input_ids).mean(1)


class BakesTheLength(MaskedMean):
    def forward(self, input_ids, attention_mask):
        length = int(input_ids.shape[1])  # the tracer records the number
        return super().forward(input_ids, attention_mask) + torch.arange(length).float().mean()


class BranchesOnRows(MaskedMean):
    def forward(self, input_ids, attention_mask):
        result = super().forward(input_ids, attention_mask)
        return result * 2 if input_ids.shape[0] == 1 else result


class GivesNan(MaskedMean):
    def forward(self, input_ids, attention_mask):
        return super().forward(input_ids, attention_mask) * float("nan")


def model(module, name="toy", **changes):
    fields = dict(name=name, module=module, inputs=INPUTS, outputs=OUTPUTS, max_length=48)
    return Model(**{**fields, **changes})


def good(name="toy"):
    return model(MaskedMean(), name=name, labels=["a", "b", "c", "d"], metadata={"note": 'with "quotes" and ümlauts'},
                 batching={"max_rows": 8, "policy": "dp"}, workers={"threads": 1})


def notices_padding():
    return model(NoticesPadding())


def bakes_the_length():
    return model(BakesTheLength())


def not_a_model():
    return 3


class ChangesItsInput(MaskedMean):
    def forward(self, input_ids, attention_mask):
        return super().forward(input_ids.clamp_(max=50), attention_mask)


class CannotBeScripted(MaskedMean):
    def forward(self, input_ids, attention_mask):
        return super().forward(input_ids, attention_mask) * float(sum({"a": 1}.get(k, 0) for k in "ab"))


def cannot_be_scripted():
    return model(CannotBeScripted())


class MaskedPicture(nn.Module):
    """A convolution under a mask: (scores [B, 2], heat [B, H, W]); padding changes neither."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Linear(4, 2)

    def forward(self, image, mask):
        own = mask.type_as(image).unsqueeze(1)
        states = torch.relu(self.first(image)) * own
        return self.head(states.sum((2, 3)) / own.sum((2, 3))), states.mean(1)


class NoticesItsHeight(MaskedPicture):
    def forward(self, image, mask):
        scores, heat = super().forward(image, mask)
        return scores + image.shape[2] * 0.01, heat


SIDES = ["height", "width"]


def picture(module=MaskedPicture, name="pictures", **changes):
    fields = dict(
        name=name, module=module(), sizes=[Size("height", 40, multiple=8), Size("width", 48, multiple=16)],
        inputs=[Tensor("image", "FP32", [-1, 3, -1, -1], sizes=SIDES),
                Tensor("mask", "INT64", [-1, -1, -1], source="mask", sizes=SIDES)],
        outputs=[Tensor("scores", "FP32", [-1, 2]), Tensor("heat", "FP32", [-1, -1, -1], sizes=SIDES)])
    return Model(**{**fields, **changes})


def grouped_pictures():
    return picture(name="grouped", sizes=[Size("height", 40, meet="group"), Size("width", 48, meet="group")])


def chunked(vocab):
    return model(MaskedMean(), name="chunked", tokenizer=Wordpiece(vocab), too_long="chunk", chunk_pooling="max",
                 chunk_overlap=4, max_chunks=9)

"""Small models for images, as Paddle builds them. Source: Paddle API `paddle.vision.models`."""

from . import lenet, mobilenetv2, resnet, vgg
from .lenet import *
from .mobilenetv2 import *
from .resnet import *
from .vgg import *

__all__ = [*lenet.__all__, *resnet.__all__, *mobilenetv2.__all__, *vgg.__all__]

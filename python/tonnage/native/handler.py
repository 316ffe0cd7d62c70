# SPDX-License-Identifier: Apache-2.0
"""A handler: SageMaker's functions from a script, a class with its weights, or a TorchScript file.

What is missing gets the default of the PyTorch inference toolkit: model_fn loads model.pt (or the only .pt or
.pth) as TorchScript, predict_fn calls the model. Without input_fn the data are the tensors themselves, one input
as it is and several as a dict by name; without output_fn the prediction is read as tensors.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Sequence

import torch

from tonnage.native import bodies, weights
from tonnage.native.spec import Spec, parse
from tonnage.native.wire import LoadFailed

TORCHSCRIPT = (".pt", ".pth", ".ts")
PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16}
# How many arguments each is given, a context not counted.
FUNCTIONS = {"model_fn": 1, "input_fn": 2, "predict_fn": 2, "output_fn": 2, "transform_fn": 4}


@dataclass(frozen=True)
class Context:
    """What the toolkit calls context: given to functions that take one argument more."""

    system_properties: dict[str, Any]


@dataclass
class Handler:
    model: Any
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)  # that want no context any more
    inputs: list[Spec] = field(default_factory=list)  # as the script's INPUTS and OUTPUTS say
    outputs: list[Spec] = field(default_factory=list)
    precision: torch.dtype = torch.float32  # of the weights; inputs and outputs keep their types

    def reads_json(self) -> bool:
        return "input_fn" in self.functions or "transform_fn" in self.functions

    def writes_json(self) -> bool:
        return "output_fn" in self.functions or "transform_fn" in self.functions

    def predict(self, values: Sequence[Any], specs: Sequence[Spec]) -> Any:
        """The inputs' values → what the handler answers: a JSON reply where writes_json(), else tensors."""
        data = bodies.write_request(values, specs) if self.reads_json() else None
        if "transform_fn" in self.functions:
            return self.functions["transform_fn"](self.model, data, bodies.CONTENT_TYPE, bodies.CONTENT_TYPE)
        if "input_fn" in self.functions:
            data = self.functions["input_fn"](data, bodies.CONTENT_TYPE)
        elif "predict_fn" in self.functions:
            data = values[0] if len(specs) == 1 else dict(zip((spec.name for spec in specs), values))
        if "predict_fn" in self.functions:
            prediction = self.functions["predict_fn"](data, self.model)
        else:
            prediction = self._model_of(data) if "input_fn" in self.functions else self._model_of(*values)
        if "output_fn" in self.functions:
            return self.functions["output_fn"](prediction, bodies.CONTENT_TYPE)
        return prediction

    def _model_of(self, *arguments: Any) -> Any:
        if self.precision == torch.float32:
            return self.model(*arguments)
        converted = [cast(argument, torch.float32, self.precision) for argument in arguments]
        return cast(self.model(*converted), self.precision, torch.float32)


def with_context(function: Callable[..., Any], given: int, context: Context) -> Callable[..., Any]:
    """The function as one of `given` arguments: a context that it wants is given to it. Looked at once, while
    loading."""
    taken = len(inspect.signature(function).parameters)
    if taken == given:
        return function
    if taken == given + 1:
        return lambda *arguments: function(*arguments, context)
    raise LoadFailed("bad_handler", f"{function.__name__} takes {taken} arguments; it is given {given}, or with a context "
                                    f"{given + 1}")


def load(path: Path, options: dict[str, str]) -> Handler:
    """Runs the handler's code. Raises LoadFailed, and whatever that code raises."""
    if not path.is_file():
        raise LoadFailed("bad_model_file", f"{path} is not a file; the entry of [native] names a script, a script and "
                                           "its class as FILE:CLASS, or a TorchScript file")
    folder = path.parent.parent if path.parent.name == "code" else path.parent
    context = Context({"model_dir": str(folder), "gpu_id": None})
    if path.suffix in TORCHSCRIPT:
        return finish(Handler(load_torchscript(path)), options)
    module = import_script(path)
    _, colon, name = options.get("entry", "").partition(":")
    if colon:
        model = build(module, name, path)
        model.load_state_dict(weights.read(path.parent, options.get("weights", "")))
        return finish(Handler(model), options)
    return finish(load_script(module, folder, context), options)


def load_script(module: ModuleType, folder: Path, context: Context) -> Handler:
    functions = {name: with_context(getattr(module, name), given, context) for name, given in FUNCTIONS.items()
                 if callable(getattr(module, name, None))}
    if "transform_fn" in functions and functions.keys() & {"input_fn", "predict_fn", "output_fn"}:
        raise LoadFailed("bad_handler", f"{module.__file__} defines transform_fn beside input_fn, predict_fn or "
                                        "output_fn, whose place it takes; define one or the other")
    model_fn = functions.pop("model_fn", default_model_fn)
    return Handler(model_fn(str(folder)), functions,
                   parse(getattr(module, "INPUTS", []), "INPUTS"), parse(getattr(module, "OUTPUTS", []), "OUTPUTS"))


def finish(handler: Handler, options: dict[str, str]) -> Handler:
    calls_model = "predict_fn" not in handler.functions and "transform_fn" not in handler.functions
    if calls_model and not callable(handler.model):
        raise LoadFailed("bad_handler", f"the model is {type(handler.model).__name__}, which cannot be called; "
                                        "define predict_fn")
    if calls_model and isinstance(handler.model, torch.nn.Module):
        handler.model.eval()
    precision = options.get("precision", "fp32")
    if precision == "fp32":
        return handler
    if precision not in PRECISIONS or handler.functions or not isinstance(handler.model, torch.nn.Module):
        raise LoadFailed("bad_handler", f"precision '{precision}' is for modules that the worker calls itself "
                                        f"({', '.join(PRECISIONS)}); a script with functions of its own converts in "
                                        "its model_fn")
    handler.precision = PRECISIONS[precision]
    handler.model.to(handler.precision)
    return handler


def cast(value: Any, when: torch.dtype, to: torch.dtype) -> Any:
    """Each tensor of that type, also inside what a model returns."""
    if torch.is_tensor(value):
        return value.to(to) if value.dtype == when else value
    if isinstance(value, dict):
        return {key: cast(item, when, to) for key, item in value.items()}
    return [cast(item, when, to) for item in value] if isinstance(value, (tuple, list)) else value


def default_model_fn(model_dir: str) -> torch.nn.Module:
    folder = Path(model_dir)
    files = [folder / "model.pt"] if (folder / "model.pt").is_file() else \
        sorted(file for file in folder.iterdir() if file.suffix in (".pt", ".pth"))
    if len(files) != 1:
        raise LoadFailed("bad_handler", f"the script has no model_fn, and {folder} holds no model.pt and "
                                        f"{len(files) or 'no'} other .pt or .pth: define model_fn, or leave one file")
    return load_torchscript(files[0])


def load_torchscript(path: Path) -> torch.jit.ScriptModule:
    try:
        return torch.jit.load(str(path), map_location="cpu").eval()
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except (RuntimeError, ValueError) as error:
        raise LoadFailed("bad_model_file", f"{path} is no TorchScript file: {weights.first_sentence(error)}") from error


def import_script(path: Path) -> ModuleType:
    """The script as a module of its own name; its folder comes first on the path, as the toolkit does it."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise LoadFailed("bad_model_file", f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def build(module: ModuleType, name: str, path: Path) -> torch.nn.Module:
    found = getattr(module, name, None)
    if not callable(found):
        raise LoadFailed("bad_handler", f"{path} has no class or function '{name}'")
    model = found()
    if not isinstance(model, torch.nn.Module):
        raise LoadFailed("bad_handler", f"{name}() of {path} gives {type(model).__name__}, not a torch.nn.Module")
    return model

"""Products as variants: an instruction with what its descriptor chooses, and the numbers that formulas about its operands read."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping

from ptxmma.catalog import layouts
from ptxmma.catalog.operands import tensor_places
from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.catalog.products import product_rules
from ptxmma.catalog.products.product_rules import Choice
from ptxmma.catalog.variants import Variant
from ptxmma.model import Requirement, Spec, operand_names

#: The operation of the instructions whose shape a descriptor says.
OPERATION = "tensor-multiply"


class Product(Variant):
    """A variant with a choice of its descriptor: extents and facts have m, n, k and the types."""

    def __init__(self, opcode: Variant, choice: Choice) -> None:
        super().__init__(opcode.instruction, opcode.form, opcode.qualifiers, {})
        self.choice = choice
        self.extents = self.extents | {name: int(choice.values[name]) for name in "mnk"}
        self.facts = {**self.facts, **choice.values}

    @property
    def chosen(self) -> tuple[tuple[str, str | int], ...]:
        """The values of the arguments."""
        return tuple(self.choice.values.items())

    @property
    def types(self) -> dict[str, str]:
        """The element type of each matrix."""
        return {name[:1]: str(self.facts[name]) for name in product_rules.TYPES}

    @property
    def sizes(self) -> dict[str, int]:
        """M, N and K."""
        return {name: self.extents[name] for name in "mnk"}

    @functools.cached_property
    def requires(self) -> tuple[Requirement, ...]:
        """The manual's rules that match its opcode, and those that come with the choice."""
        return (*super().requires, *self.choice.requires)


def resolve(spec: Spec, opcode: Variant, given: Mapping[str, str | int]) -> Product:
    """The product that arguments choose for an opcode.

    Raises:
        TypeError: an unknown argument.
        IllegalProductError: an argument is missing or illegal, or the opcode states its shape itself.
    """
    if unknown := [name for name in given if name not in product_rules.ARGUMENTS]:
        legal = ", ".join(product_rules.ARGUMENTS)
        raise TypeError(f"an instruction has no argument {', '.join(unknown)}; what an instruction descriptor may choose: {legal}")
    if opcode.instruction.operation != OPERATION or spec.tensor_products is None:
        raise product_rules.IllegalProductError(opcode.canonical, f"states its shape and types itself; leave out {', '.join(given)}")
    return Product(opcode, product_rules.choose(spec, opcode.canonical, opcode.facts, given))


def unstated(spec: Spec, opcode: Variant) -> list[str]:
    """The arguments that an opcode leaves open, and that have more than one legal value."""
    return product_rules.unstated(spec.tensor_products, opcode.facts) if spec.tensor_products is not None else []


def types(spec: Spec, opcode: Variant) -> dict[str, set[str]]:
    """The types that an opcode leaves open, by argument; empty where it states them itself."""
    if opcode.instruction.operation != OPERATION or spec.tensor_products is None:
        return {}
    return product_rules.types(spec.tensor_products, opcode.facts)


def has_shape(spec: Spec, opcode: Variant, shape: str) -> bool:
    """Return whether a descriptor may choose a shape for an opcode: ``"m128n256k16"``, or ``"m128nNk16"`` for any N."""
    sizes = re.fullmatch(r"m([0-9]+)n([0-9]+|N)k([0-9]+)", shape)
    if opcode.instruction.operation != OPERATION or spec.tensor_products is None or sizes is None:
        return False
    m, n, k = (None if size == "N" else int(size) for size in sizes.groups())
    return product_rules.has_sizes(spec.tensor_products, opcode.facts, m, n, k)


def every(spec: Spec, opcode: Variant) -> Iterator[Product]:
    """Every legal product of an opcode."""
    if spec.tensor_products is not None:
        for choice in product_rules.every(spec.tensor_products, opcode.facts):
            yield Product(opcode, choice)


def numbers(spec: Spec, product: Product, matrix: str) -> dict[str, int]:
    """Return the numbers for formulas about a matrix: extents, ``bits``, ``shift``, ``ratio``, ``chunk_size`` and ``blocks``."""
    return sizes(spec, product) | element_bits(spec, product, matrix)


def sizes(spec: Spec, product: Product) -> dict[str, int]:
    """Return the numbers that are the same for every matrix: extents, ``ratio``, ``chunk_size`` and ``blocks``."""
    known = {"ctas": 1, "ratio": 1} | product.extents
    kept, chunk = 1, 1
    pattern = layouts.granularity(spec, product)
    if pattern is not None:
        kept, chunk = pattern.kept, pattern.chunk
        known |= {"ratio": chunk // kept, "chunk_size": chunk}
    if product.choice.block:
        known["blocks"] = known["k"] * kept // chunk // product.choice.block
    return known


def element_bits(spec: Spec, product: Product, matrix: str) -> dict[str, int]:
    """Return ``bits`` and ``shift`` of the elements of a matrix; nothing where it has no type."""
    element = str(product.choice.values.get(f"{matrix}type", ""))
    if not element:
        return {}
    around = layouts.container(spec, element, product.facts)
    return {"bits": around.bits, "shift": around.shift} if around else {"bits": layouts.element_type(spec, element).bits}


def places(spec: Spec, variant: Variant, kind: str, matrix: str) -> TensorPlaces | None:
    """The layout of an operand of a kind in tensor memory, or None where the spec has none.

    It describes a matrix of a product, or what a variant of fixed size writes: then ``matrix`` is empty.
    """
    memory = spec.tensor_memory_of(variant.facts)
    if memory is None:
        return None
    known = layout_numbers(spec, variant, matrix)
    return tensor_places.of(memory, kind, matrix, {**variant.facts, **known}, known)


def completed(
    spec: Spec, opcode: Variant, given: Mapping[str, str | int], answer: Callable[[Product], object]
) -> tuple[Product | None, dict[str, list[str | int]]]:
    """The largest product with some arguments, of those that have an answer if any has, and what else the answer depends on: legal values.

    Depths and further fields that are not given are the usual ones.  ``answer`` is None for a product that has none.
    """
    usual: dict[tuple[tuple[str, str | int], ...], dict[str, str | int]] = {}
    answers: dict[Product, object] = {}
    rules = spec.tensor_products
    for types in product_rules.typed(rules, opcode.facts) if rules is not None else ():
        for choice in product_rules.sized(rules, opcode.facts, types) if rules is not None else ():
            deep = {name: value for name, value in choice.values.items() if name not in ("m", "n", "stype")}
            said = all(str(choice.values.get(name)) == str(value) for name, value in given.items())
            if said and deep == usual.setdefault(tuple(types.items()), deep):
                product = Product(opcode, choice)
                answers[product] = answer(product)
    answers = {product: known for product, known in answers.items() if known is not None} or answers
    largest = max(answers, key=lambda product: product.extents["m"] * product.extents["n"], default=None)
    depends: dict[str, list[str | int]] = {}
    for name in largest.choice.values if largest else ():
        first: dict[tuple[tuple[str, str | int], ...], object] = {}
        others = {product: tuple(pair for pair in product.chosen if pair[0] != name) for product in answers}
        if any(first.setdefault(others[product], known) != known for product, known in answers.items()):
            depends[name] = list(dict.fromkeys(product.choice.values[name] for product in answers))
    return largest, depends


def placement(spec: Spec, product: Product, kind: str, matrix: str) -> object:
    """Everything that says where an operand of a kind lies in a product, to compare with another product."""
    placed = places(spec, product, kind, matrix)
    if placed is None:
        return product.chosen
    selected = (dict(zip(placed.selections, values, strict=True)) for values in itertools.product(*placed.selections.values()))
    return placed.sizes, placed.selections, placed.unit, placed.shift, [placed.digits(each) for each in selected]


def layout_numbers(spec: Spec, variant: Variant, matrix: str) -> dict[str, int]:
    """Return the numbers that the layout of an operand reads: of a product, or of a variant of fixed size."""
    return numbers(spec, variant, matrix) if isinstance(variant, Product) else {"ctas": 1}


def described(opcode: Variant) -> Iterator[tuple[str, str]]:
    """The kind and the matrix of each operand of an opcode that the spec's layouts of tensor memory may be for."""
    lists = opcode.instruction.operands.get(opcode.form.operands, ())
    entries = (opcode.instruction.operand_kinds[name] for text in lists for name in operand_names(text))
    yield from dict.fromkeys((entry.kind, entry.of) for entry in entries if entry.of)

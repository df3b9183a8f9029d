"""The faults of the descriptors that instructions take, as far as their bits are known.

The start of a matrix is rarely a constant, but its strides and its swizzle usually are: each is judged if all bits are known that it
depends on.  An instruction descriptor is judged by its opcode, and the descriptors of A and B by the product that it makes of the opcode.
Where the product is not known, they are judged by what holds for every product.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.catalog.descriptors.bits import mask
from ptxmma.catalog.descriptors.chosen_product import argument_of, product_of
from ptxmma.catalog.descriptors.lookup import codec, codec_of, misplaced
from ptxmma.catalog.layouts import container
from ptxmma.catalog.products.product_rules import IllegalProductError
from ptxmma.check import rule_examples as examples
from ptxmma.check.findings import Severity
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.check.rule import Rule
from ptxmma.matrices.product_operands import Multiplicand, described, product_operands
from ptxmma.matrices.shared.suspicions import Suspicion, suspicions
from ptxmma.model import matches
from ptxmma.ptx.known_bits import Bits, KnownBits
from ptxmma.ptx.lines import items
from ptxmma.ptx.literals import integer

if TYPE_CHECKING:
    from ptxmma.catalog.descriptors.bits import Value
    from ptxmma.catalog.descriptors.codec import Codec
    from ptxmma.catalog.instructions import Catalog, Instruction
    from ptxmma.check.kernels import Kernel
    from ptxmma.ptx.flow_events import Issue
    from ptxmma.ptx.outline import Outline
    from ptxmma.ptx.statements import Statement

RULES: Mapping[str, Rule] = {
    "descriptor": Rule(
        "The strides, the base offset and the swizzle of a matrix descriptor agree with each other and with the matrix, and the fixed bits "
        "of descriptors and of column masks are right.",
        "The instruction accepts all 64-bit numbers. With a stride in bytes instead of units of 16, or one of another swizzle, it reads "
        "other elements than were meant.",
        "Let ptxmma descriptor encode make the descriptor from the type, the swizzle and the size of the matrix.",
        f"mov.b64 %rd1, 0x4000040000010040;\nmov.b64 %rd2, %rd1;\nwgmma.fence.sync.aligned;\n{examples.WGMMA}",
        f"mov.b64 %rd1, 0x4000004000010040;\nmov.b64 %rd2, %rd1;\nwgmma.fence.sync.aligned;\n{examples.WGMMA}",
    ),
    "instruction-descriptor": Rule(
        "An instruction descriptor is one of its opcode: it has a legal M and N, types of its kind, and no bits that must be 0.",
        "Assemblers do not see what the descriptor holds. With another, behaviour is undefined.",
        "Let ptxmma.descriptors.of_product make it; ptxmma descriptor instruction f16 0x8400490 shows the fields of one. A product on "
        "which the manual and other sources disagree is a note alone.",
        examples.tensor_kernel("mov.b32 %r1, 0x8420490;", examples.TENSOR_PRODUCT, examples.TENSOR_COMMIT),
        examples.tensor_kernel("mov.b32 %r1, 0x8400490;", examples.TENSOR_PRODUCT, examples.TENSOR_COMMIT),
    ),
}


# --- matrix descriptors of instructions with accumulators in registers -----------------------------------------------------


class _MatrixDescriptor(NamedTuple):
    """An operand of an asynchronous instruction that is a descriptor."""

    place: int  # its number among the operands
    matrix: Multiplicand
    family: str  # the family of the instruction
    majorness: int | None  # the number of the operand that says how the matrix lies; None where only one majorness is possible
    meanings: dict[int | None, str]  # the majorness for each value of that operand
    source: str


class MatrixDescriptors:
    """Judges the descriptors of asynchronous instructions with accumulators in registers by a database."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._described = functools.lru_cache(maxsize=1 << 8)(self._descriptors)
        self._texts: dict[tuple[Bits, str | None, Multiplicand, str], list[str]] = {}

    def of_kernel(self, kernel: Kernel, outline: Outline) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on the descriptors of a function, each with the opcode that it is about: the first of those that are alike.

        Args:
            kernel: the function.
            outline: its asynchronous instructions.
        """
        function = kernel.function
        reported = set[str]()
        for issue, each, text in self._doubts(outline, kernel.bits):
            message = f"in the descriptor of {each.matrix.name.upper()}, {text} (PTX ISA {each.source})"
            statement = function.statement(issue.offset)
            if statement is not None and statement.broken is None and message not in reported:
                reported.add(message)
                yield Remark(function.operand(statement, each.place), "warning", "descriptor", message), issue.opcode

    def _doubts(self, outline: Outline, known: KnownBits) -> Iterator[tuple[Issue, _MatrixDescriptor, str]]:
        """The doubts about the descriptors of asynchronous instructions, each with its instruction."""
        for issue in outline.issues:
            operands = issue.operands
            for each in self._described(issue.opcode, tuple([operand.startswith(b"{") for operand in operands])):
                majorness = None
                if each.majorness is not None:
                    majorness = each.meanings.get(integer(operands[each.majorness]))
                    if majorness is None:
                        continue
                for text in self._wrong(known.of(operands[each.place]), majorness, each.matrix, each.family):
                    yield issue, each, text
                format = codec("matrix", each.family, database=self._catalog.database)
                yield from ((issue, each, text) for text in _dropped(known, operands[each.place], format))

    def _descriptors(self, opcode: bytes, listed: tuple[bool, ...]) -> list[_MatrixDescriptor]:
        """The descriptors among the operands of an instruction, by which of its operands are lists."""
        instruction = self._catalog.meaning(spelling_of(opcode))
        forms = instruction.forms if instruction is not None else ()
        form = next((form for form in forms if tuple(operand.listed for operand in form.operands) == listed), None)
        if instruction is None or form is None:
            return []
        product, described = product_operands(instruction), []
        for place, operand in enumerate(form.operands):
            if operand.kind == "descriptor":
                matrix = product.a if operand.of == product.a.name else product.b
                kinds = ((number, other) for number, other in enumerate(form.operands) if other.of == operand.of)
                number, other = next(((number, other) for number, other in kinds if other.kind == "majorness"), (None, operand))
                meanings: dict[int | None, str] = {value: name for name, value in other.meanings.items()}
                described.append(_MatrixDescriptor(place, matrix, instruction.family, number, meanings, operand.source))
        return described

    def _wrong(self, bits: Bits, majorness: str | None, matrix: Multiplicand, family: str) -> list[str]:
        """The faults of a descriptor that it has whatever its unknown bits are."""
        key = bits, majorness, matrix, family
        if key not in self._texts:
            doubts = suspicions(bits.value, majorness, matrix=matrix, unknown=bits.unknown, family=family, database=self._catalog.database)
            # A base offset of 0 is right for every matrix that TMA writes, wherever it starts.
            self._texts[key] = [each.text for each in doubts if each.severity == "warning"]
        return self._texts[key]


# --- descriptors of instructions of tensor memory --------------------------------------------------------------------------

_MATRIX, _PRODUCT, _MASK = "shared-descriptor", "instruction-descriptor", "column-mask"
#: The field that only products with a mask read.
_SHIFT = "max_shift"
#: The rules about them.
_RULES = {_MATRIX: "descriptor", _PRODUCT: "instruction-descriptor", _MASK: "descriptor"}


class _Described(NamedTuple):
    """An operand of an instruction of tensor memory that is a descriptor."""

    place: int  # its number among the operands
    kind: str
    matrix: str  # "a" or "b"; "" where it describes no multiplicand
    source: str


class _Product(NamedTuple):
    """The meaning of an instruction descriptor, as far as it is known."""

    wrong: tuple[str, ...]
    fields: Mapping[str, Value]  # the fields that are known
    chosen: Instruction | None  # the product, where all is known that it depends on
    unsettled: tuple[str, ...] = ()  # the questions on which the sources disagree


class TensorDescriptors:
    """Judges the descriptors of instructions of tensor memory by a database; answers are remembered."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        entries = catalog.database.spec.instructions
        described = (entry for entry in entries if any(kind.kind == _MATRIX for kind in entry.operand_kinds.values()))
        self._opcodes = tuple({entry.start for entry in described})
        self._described = functools.lru_cache(maxsize=1 << 8)(self._descriptors)
        self._product = functools.lru_cache(maxsize=1 << 8)(self._read)
        self._matrix = functools.lru_cache(maxsize=1 << 10)(self._wrong_matrix)
        self._mask = functools.lru_cache(maxsize=1 << 8)(self._wrong_mask)

    def of_kernel(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on the descriptors of a function, each with the opcode that it is about: the first of those that are alike."""
        if not any(opcode.startswith(self._opcodes) for opcode in kernel.opcodes):
            return
        function = kernel.function
        statements = [each for each in function.statements() if each.broken is None and each.opcode.startswith(self._opcodes)]
        reported = set[str]()
        for statement, each, text, severity in self._doubts(statements, kernel.target, kernel.bits):
            where = f"in the descriptor of {each.matrix.upper()}, " if each.matrix else f"in the {each.kind.replace('-', ' ')}, "
            # A limit of products brings its own source.
            message = f"{where}{text}" if "(PTX ISA " in text else f"{where}{text} (PTX ISA {each.source})"
            if message not in reported:
                reported.add(message)
                yield Remark(function.operand(statement, each.place), severity, _RULES[each.kind], message), statement.opcode

    def product(self, statement: Statement, known: KnownBits, target: str) -> Instruction | None:
        """The product that an instruction makes of its instruction descriptor; None where it is not known."""
        instruction = self._catalog.meaning(spelling_of(statement.opcode)) if statement.opcode.startswith(self._opcodes) else None
        if instruction is None:
            return None
        described = self._described(instruction, tuple([_bracket(operand) for operand in statement.operands]))
        place = next((each.place for each in described if each.kind == _PRODUCT), None)
        return None if place is None else self._product(instruction, known.of(statement.operands[place]).within(32), target).chosen

    def _doubts(
        self, statements: Iterable[Statement], target: str, known: KnownBits
    ) -> Iterator[tuple[Statement, _Described, str, Severity]]:
        for statement in statements:
            instruction = self._catalog.meaning(spelling_of(statement.opcode))
            if instruction is None:
                continue
            product = _Product((), {}, None)
            for each in self._described(instruction, tuple([_bracket(operand) for operand in statement.operands])):
                bits = known.of(statement.operands[each.place])
                if each.kind == _PRODUCT:
                    product = self._product(instruction, bits.within(32), target)
                    wrong = product.wrong
                    yield from ((statement, each, text, "note") for text in product.unsettled)
                elif each.kind == _MASK:
                    wrong = self._mask(instruction.family, bits)
                else:
                    majorness = str(product.fields.get(f"{each.matrix}_majorness", ""))
                    wrong = self._matrix(product.chosen or instruction, each.matrix, majorness, bits, target)
                    format = codec("matrix", instruction.family, database=self._catalog.database)
                    wrong += tuple(_dropped(known, statement.operands[each.place], format))
                yield from ((statement, each, text, "warning") for text in wrong)

    @staticmethod
    def _descriptors(instruction: Instruction, brackets: tuple[bytes, ...]) -> list[_Described]:
        """The descriptors among the operands of an instruction, by how these are bracketed; the instruction descriptor comes first."""
        for form in instruction.forms:
            pairs = list(zip(items(form.syntax), form.operands, strict=True))
            if brackets == tuple(b"{" if operand.listed else b"[" if name.startswith("[") else b"" for name, operand in pairs):
                operands = enumerate(form.operands)
                described = [_Described(place, each.kind, each.of, each.source) for place, each in operands if each.kind in _RULES]
                return sorted(described, key=lambda each: each.kind != _PRODUCT)
        return []

    @staticmethod
    def _read(instruction: Instruction, bits: Bits, target: str) -> _Product:
        """The meaning of an instruction descriptor, whatever its unknown bits are."""
        try:
            format = codec_of(instruction, target or None)
        except ValueError:  # the target has no such instruction
            return _Product((), {}, None)
        decoded = format.decode(bits.value)
        fields = {field.name: decoded[field.name] for field in format.parameters if not mask(field) & bits.unknown}
        wrong = [each.text for each in format.wrong_fields(bits.value, bits.unknown)]
        if fields.get("sparse", instruction.sparse) != instruction.sparse:
            wrong.append(f"sparse is {fields['sparse']}, but the opcode multiplies {'sparse' if instruction.sparse else 'dense'} matrices")
        if fields.get(_SHIFT) and not any(kind.kind == _MASK for kind in instruction.variant.instruction.operand_kinds.values()):
            wrong.append(f"{_SHIFT} is {fields[_SHIFT]}, but only .ws reads it")
        chosen, unsettled = None, () if wrong else _unsettled(instruction, fields)
        if not wrong and all(name in fields for name in decoded if argument_of(name)):
            try:
                chosen = product_of(instruction, fields, target)
            except IllegalProductError as error:
                wrong += [] if unsettled else [str(error)]
            else:
                wrong += misplaced(chosen, fields)
        return _Product(tuple(wrong), fields, chosen, unsettled)

    def _wrong_mask(self, family: str, bits: Bits) -> tuple[str, ...]:
        """The faults of the mask of the columns of B, whatever its unknown bits are."""
        mistakes = codec("columns", family, database=self._catalog.database).mistakes(bits.value, bits.unknown)
        return tuple(each.text for each in mistakes)

    def _wrong_matrix(self, instruction: Instruction, matrix: str, majorness: str, bits: Bits, target: str) -> tuple[str, ...]:
        """The faults of a matrix descriptor, whatever its unknown bits are."""
        try:
            format = codec("matrix", instruction.family, target=target or None, database=self._catalog.database)
        except ValueError:  # the target has no such instruction
            return ()
        mistakes = format.mistakes(bits.value, bits.unknown)
        if mistakes or not matrix:
            return tuple(each.text for each in mistakes)
        multiplicand = described(instruction).get(matrix)
        if multiplicand is not None and multiplicand.padded:
            return ()  # it is padded, and canonical layouts are not
        doubts = self._suspicions(instruction, multiplicand, majorness, bits, target)
        if multiplicand is None:
            doubts += self._zeros(instruction, matrix, majorness, bits, target)
        # A base offset of 0 is right for every matrix that TMA writes, wherever it starts.
        return tuple(dict.fromkeys(each.text for each in doubts if each.severity == "warning"))

    def _suspicions(
        self, instruction: Instruction, multiplicand: Multiplicand | None, majorness: str, bits: Bits, target: str
    ) -> list[Suspicion]:
        return suspicions(
            bits.value,
            majorness or None,
            matrix=multiplicand,
            unknown=bits.unknown,
            family=instruction.family,
            target=target or None,
            database=self._catalog.database,
        )

    def _zeros(self, instruction: Instruction, matrix: str, majorness: str, bits: Bits, target: str) -> list[Suspicion]:
        """The strides of 0 that count in every product that an opcode may mean."""
        shared: dict[str, Suspicion] | None = None
        for multiplicand in self._possible(instruction, matrix):
            found = self._suspicions(instruction, multiplicand, majorness, bits, target)
            zeros = {each.field: each for each in found if each.rule == "zero"}
            shared = {name: each for name, each in zeros.items() if shared is None or name in shared}
        return [*(shared or {}).values()]

    def _possible(self, instruction: Instruction, matrix: str) -> list[Multiplicand]:
        """The smallest matrices, dense and without padding, that an opcode may mean; none if it may mean others, too."""
        spec, facts = self._catalog.database.spec, dict(instruction.variant.facts)
        products = spec.tensor_products
        if products is None or instruction.sparse:
            return []
        elements = {element.name: element for element in spec.types.elements}
        names = {name for types in products.fitting.types(facts) for name in (types.atype if matrix == "a" else types.btype)}
        if any(container(spec, name, facts) is not None for name in names):
            return []
        sizes = set[tuple[int, int]]()
        for depth in (row.k for row in products.fitting.depths(facts)):
            for shape in products.fitting.shapes({**facts, "k": depth}):
                least = min(shape.m) if matrix == "a" else min(row.first for row in shape.n)
                sizes.add((least // instruction.extents.get("ctas", 1), depth))
        return [Multiplicand(matrix, elements[name], lines, depth, described=True) for name in names for lines, depth in sizes]


def _dropped(known: KnownBits, operand: bytes, format: Codec) -> Iterator[str]:
    """The fields of a descriptor whose numbers lose bits that are always 1."""
    for field in format.format.fields:
        if dropped := field.shift and known.dropped(operand, field.low, field.shift):
            bit = (dropped & -dropped).bit_length() - 1
            yield f"{field.name} counts units of {1 << field.shift} {field.unit}: bit {bit}, which is always set, is lost"


def _bracket(operand: bytes) -> bytes:
    """The bracket with which an operand begins; ``b""`` without one."""
    return operand[:1] if operand.startswith((b"{", b"[")) else b""


def _unsettled(instruction: Instruction, fields: Mapping[str, Value]) -> tuple[str, ...]:
    """The questions about a product on which the sources disagree, by the errata; ``fields`` are the known fields of its descriptor."""
    facts = {**instruction.variant.facts, **fields}
    open_questions = (each for each in instruction.database.spec.errata if each.unsettled and each.family == instruction.family)
    return tuple(
        [
            f"the sources disagree on this product: {each.says} {each.holds} Erratum {each.id}"
            for each in open_questions
            if matches(each.unsettled, facts)
        ]
    )

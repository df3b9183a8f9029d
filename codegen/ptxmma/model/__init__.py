"""The spec as frozen structures: what ``spec/*.yaml`` says, checked, and nothing more.

The generator builds them from YAML and writes them, still factored, to ``ptxmma.json``; the library reads the same structures
back.  Everything else (variants, operands, targets) is derived from them by the modules beside this one.

Every ``source`` is a section number of the PTX ISA (``"9.7.14.6.3"``) or says who observed the fact (``"ptxas 13.5"``, ``"H200"``).
"""

from ptxmma.model.block_format import BlockFormat, BlockScaling
from ptxmma.model.conditions import Condition, Entry, Facts, matches
from ptxmma.model.database import Database, Layout, Spec
from ptxmma.model.element import Carrier, Container, ElementType, RegisterType, Types
from ptxmma.model.erratum import Erratum, Sighting
from ptxmma.model.instruction import (
    Accumulation,
    Form,
    Ignored,
    InstructionSet,
    Observation,
    OperandKind,
    Qualifier,
    QualifierDefault,
    Range,
    Requirement,
    Semantics,
    Shape,
    Statement,
)
from ptxmma.model.memory import Banks, CanonicalLayout, DescriptorField, Example, Majorness, SharedMemory, Swizzle, TensorMap
from ptxmma.model.peak import Rate, Throughput
from ptxmma.model.protocol import Definition, Ordering, Protocol, ProxyAccess, Step
from ptxmma.model.register_layout import Case, Cases, Fragment, MetadataLayout, ScaleLayout, Stated
from ptxmma.model.sparsity import Choice, Fault, Granularity
from ptxmma.model.target import IsaVersion, ReleaseFloor, Target

__all__ = [
    "Accumulation", "Banks", "BlockFormat", "BlockScaling", "CanonicalLayout", "Carrier", "Case", "Cases",
    "Choice", "Condition", "Container", "Database", "Definition", "DescriptorField", "ElementType", "Entry",
    "Erratum", "Example", "Facts", "Fault", "Form", "Fragment", "Granularity", "Ignored", "InstructionSet",
    "IsaVersion", "Layout", "Majorness", "matches", "MetadataLayout", "Observation", "OperandKind",
    "Ordering", "Protocol", "ProxyAccess", "Qualifier", "QualifierDefault", "Range", "Rate", "RegisterType",
    "ReleaseFloor", "Requirement", "ScaleLayout", "Semantics", "Shape", "SharedMemory", "Sighting", "Spec",
    "Stated", "Statement", "Step", "Swizzle", "Target", "TensorMap", "Throughput", "Types",
]  # fmt: skip

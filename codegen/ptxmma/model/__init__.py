"""The spec as frozen structures: the validated content of ``spec/*.yaml``.

The generator builds them from YAML and writes them, still factored, to ``ptxmma.json``; the library reads the same structures
back.  Everything else (variants, operands, targets) is derived from them by the modules beside this one.

Every ``source`` is a section number of the PTX ISA (``"9.7.14.6.3"``) or says who observed the fact (``"ptxas 13.5"``, ``"H200"``).
"""

from ptxmma.model.database import Database, Layout, LayoutDigits, Spec
from ptxmma.model.dequantisation import Dequantisation, ScaleSteps, Steps
from ptxmma.model.descriptor_format import ColumnMask, DescriptorField, DescriptorFormat, FieldCase, MaskExample
from ptxmma.model.element import BlockFormat, BlockScaling, Carrier, Container, ElementType, RegisterType, Types
from ptxmma.model.erratum import Erratum, Overwriting, Quirk
from ptxmma.model.fields import Condition, Entry, Facts, matches
from ptxmma.model.instruction import (
    Accumulation,
    Extents,
    Form,
    Hint,
    HintValue,
    Ignored,
    InstructionSet,
    Kind,
    Observation,
    OperandKind,
    OperandRequirement,
    Qualifier,
    QualifierDefault,
    Range,
    Requirement,
    Semantics,
    Statement,
    operand_names,
)
from ptxmma.model.memory import (
    Banks,
    CanonicalLayout,
    Example,
    Majorness,
    Padded,
    SharedMemory,
    SuspicionRule,
    Suspicions,
    Swizzle,
)
from ptxmma.model.message import Message
from ptxmma.model.protocol import (
    ByteCount,
    Counterpart,
    Definition,
    Issuer,
    Lifecycle,
    Ordering,
    Pairing,
    PhaseFault,
    Pool,
    Protocol,
    ProxyAccess,
    Race,
    Step,
    Transition,
)
from ptxmma.model.register_layout import COPY, WINDOW, Case, Cases, RegisterLayout, Stated
from ptxmma.model.space import REGISTERS, CoordinateSize, Space
from ptxmma.model.sparsity import Choice, Fault, Granularity
from ptxmma.model.target import Gpu, IsaVersion, Rate, ReleaseFloor, Section, SharedCapacity, Target, Throughput
from ptxmma.model.tensor_layout import Selection, TensorKind, TensorLayout, UnknownPlace
from ptxmma.model.tensor_map import (
    BoxLimits,
    DriverDifference,
    Fill,
    Interleave,
    TensorMapMode,
    TensorMapRule,
    TensorMaps,
    TensorMapSwizzle,
    TensorMapType,
)
from ptxmma.model.tensor_product import (
    ProductDepth,
    ProductLimit,
    ProductOption,
    ProductScale,
    ProductShape,
    ProductTypes,
    TensorProducts,
)
from ptxmma.model.version import Version
from ptxmma.model.vocabulary import Part, Preference, Question, Topic, Word
